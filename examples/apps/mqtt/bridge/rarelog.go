package bridge

import (
	"log/slog"
	"sync"
	"time"
)

// logEvery is how often a rareLog writes.
const logEvery = 10 * time.Second

// rareLog writes one warning in a while, with the number of those that it left out.
type rareLog struct {
	log *slog.Logger

	mu      sync.Mutex
	last    time.Time
	skipped int
}

func (l *rareLog) warn(text string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last) < logEvery {
		l.skipped++
		return
	}
	l.log.Warn(text, append(args, "more like it since the last", l.skipped)...)
	l.last, l.skipped = time.Now(), 0
}
