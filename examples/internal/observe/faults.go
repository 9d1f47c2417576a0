package observe

import (
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
)

// quiet is the time after a logged fault in which further ones are only counted, so that an unreachable collector does
// not fill the log.
const quiet = time.Minute

// faults logs errors of the telemetry itself.
type faults struct {
	log *slog.Logger

	mu      sync.Mutex
	last    time.Time
	skipped int
	closed  bool
}

// watchFaults logs the faults that OpenTelemetry reports only to its global error handler.
func watchFaults(log *slog.Logger) *faults {
	f := &faults{log: log}
	otel.SetErrorHandler(f)
	return f
}

// Handle implements otel.ErrorHandler.
func (f *faults) Handle(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if !f.last.IsZero() && time.Since(f.last) < quiet {
		f.skipped++
		return
	}
	f.log.Warn("telemetry is not delivered", "error", err, "more_before", f.skipped)
	f.last, f.skipped = time.Now(), 0
}

// close logs the number of faults that were only counted, and stops logging.
func (f *faults) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.skipped > 0 {
		f.log.Warn("telemetry was not delivered", "times", f.skipped)
	}
	f.closed = true
}
