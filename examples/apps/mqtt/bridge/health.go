package bridge

import (
	"errors"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
)

// health decides whether a message waits because the store is down for all, or because of something of its own. The
// zero value is ready to use.
type health struct {
	mu     sync.Mutex
	last   time.Time // when a message was last stored
	failed [2]failure
}

// failure is the last one of a message. The two of health are of different messages.
type failure struct {
	message *message
	at      time.Time
}

func (h *health) stored(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = at
}

// down records that a message has failed, and reports whether the store is down for all: nothing has been stored since
// the message began to wait; or nothing since this attempt, while another message has failed, too. If one message holds
// back the acknowledgements of all others, these are stored, nothing more arrives, and nothing fails but that one.
func (h *health) down(m *message, now time.Time, window time.Duration) bool {
	if errors.Is(m.err, limit.ErrExceeded) || errors.Is(m.err, rollup.ErrTooManyMessages) {
		return false // the store has answered
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed[0].message != m {
		h.failed[1] = h.failed[0]
	}
	h.failed[0] = failure{m, now}
	another := h.failed[1].message != nil && now.Sub(h.failed[1].at) < window
	return !h.last.After(m.since) || another && !h.last.After(m.attempt)
}
