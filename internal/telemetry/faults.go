package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

const (
	// quiet is how long a repeated fault is only counted after it was logged.
	quiet = 30 * time.Second
	// mostFaults bounds how many different faults are counted separately.
	mostFaults = 100
)

// faults logs faults: the first of each kind at once, repeats as at most one line each half minute. A nil *faults logs
// nothing.
type faults struct {
	logger *slog.Logger

	mu     sync.Mutex
	counts map[fault]*counted
	closed bool
}

// fault is a kind of fault.
type fault struct{ message, operation, kind string }

// counted is how many times a fault happened since it was last logged.
type counted struct {
	level slog.Level
	times int
	since time.Time
	timer *time.Timer
}

func newFaults(logger *slog.Logger, table string) *faults {
	return &faults{logger: logger.With("table", table), counts: map[fault]*counted{}}
}

// note logs a fault, or counts it.
func (l *faults) note(ctx context.Context, level slog.Level, f fault, more ...slog.Attr) {
	if l == nil || !l.logger.Enabled(ctx, level) {
		return
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	if l.counts[f] == nil && len(l.counts) >= mostFaults {
		f = fault{message: f.message, kind: Other}
	}
	if c := l.counts[f]; c != nil {
		c.times++
		l.mu.Unlock()
		return
	}
	c := &counted{level: level, since: time.Now()}
	l.counts[f] = c
	c.timer = time.AfterFunc(quiet, func() { l.sum(f) })
	l.mu.Unlock()
	l.logger.LogAttrs(ctx, level, f.message, append(f.attributes(), more...)...)
}

// sum logs how many times a fault was repeated, or forgets it if it was not.
func (l *faults) sum(f fault) {
	l.mu.Lock()
	c := l.counts[f]
	if c == nil || l.closed {
		l.mu.Unlock()
		return
	}
	last := *c
	if last.times == 0 {
		delete(l.counts, f)
	} else {
		c.times, c.since = 0, time.Now()
		c.timer.Reset(quiet)
	}
	l.mu.Unlock()
	l.repeated(f, last)
}

func (l *faults) repeated(f fault, c counted) {
	if c.times > 0 {
		l.logger.LogAttrs(context.Background(), c.level, f.message,
			append(f.attributes(), slog.Int("repeated", c.times), slog.Duration("within", time.Since(c.since).Round(time.Millisecond)))...)
	}
}

// logRare logs a rare event directly.
func (l *faults) logRare(level slog.Level, message string, attrs ...slog.Attr) {
	if l != nil {
		l.logger.LogAttrs(context.Background(), level, message, attrs...)
	}
}

// Clock logs how far the store's clock is ahead; a negative value means behind, and 0 that it is right again.
func (p *Probe) Clock(ahead time.Duration) {
	switch {
	case p == nil || p.logs == nil:
	case ahead > 0:
		p.logs.logRare(slog.LevelWarn, "the clock is ahead; nothing is deleted by age", slog.Duration("ahead", ahead.Round(time.Second)))
	case ahead < 0:
		p.logs.logRare(slog.LevelWarn, "the clock is behind", slog.Duration("behind", -ahead.Round(time.Second)))
	default:
		p.logs.logRare(slog.LevelInfo, "the clock is right again")
	}
}

// close logs the faults that were only counted so far.
func (l *faults) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	counts := l.counts
	l.counts, l.closed = nil, true
	for _, c := range counts {
		c.timer.Stop()
	}
	l.mu.Unlock()
	for f, c := range counts {
		l.repeated(f, *c)
	}
}

func (f fault) attributes() []slog.Attr {
	attrs := make([]slog.Attr, 0, 6)
	if f.operation != "" {
		attrs = append(attrs, slog.String("operation", f.operation))
	}
	return append(attrs, slog.String("error_type", f.kind))
}

// log logs the failure of an operation: failures of the service as warnings, refusals of the SDK and cancelled calls at
// debug level.
func (o *Op) log(err error, f failure) {
	level, message := slog.LevelWarn, "operation failed"
	switch {
	case (f.kind == canceled || errors.Is(err, context.Canceled)) && o.ctx.Err() == context.Canceled:
		level, message = slog.LevelDebug, "operation given up by the caller"
	case f.refused, f.code == "" && o.requests.Load() == 0:
		level, message = slog.LevelDebug, "operation refused"
	}
	var more []slog.Attr
	if o.details.subject.Dataset != "" {
		more = append(more, slog.String("dataset", o.details.subject.Dataset))
	}
	if o.probe.conf.Details {
		if o.details.subject.Tenant != "" {
			more = append(more, slog.String("tenant", o.details.subject.Tenant))
		}
		more = append(more, slog.String("error", err.Error()))
	}
	o.probe.logs.note(o.ctx, level, fault{message: message, operation: o.series.operation, kind: f.kind}, more...)
}
