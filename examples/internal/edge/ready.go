package edge

import (
	"context"
	"time"
)

const (
	readyFor   = time.Second
	readyLimit = 2 * time.Second
)

// Ready reports whether the store can be read. It asks the store at most once a second, however many clients ask, and
// waits at most two seconds. It is safe for concurrent use.
type Ready struct {
	ask func(context.Context) error

	turn  chan struct{} // held during a check of the store; concurrent callers share its result
	until time.Time
	err   error
}

// NewReady returns a Ready that checks the store with ask, such as Store.Ping.
func NewReady(ask func(context.Context) error) *Ready {
	return &Ready{ask: ask, turn: make(chan struct{}, 1)}
}

// Err returns nil if the store can be read, and else the reason.
func (r *Ready) Err() error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if time.Now().Before(r.until) {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyLimit) // not the client's: others share the answer
	defer cancel()
	r.err = r.ask(ctx)
	r.until = time.Now().Add(readyFor)
	return r.err
}
