package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark-go/tidemark/internal/clock"
)

// highEvery is how often the folder is told what time it is.
const highEvery = time.Minute

// Watch returns the engine's watch over its clock.
func (e *Engine) Watch() *clock.Watch { return e.watch }

// resumeClock finds out what time it was when the folder was last open, so that a clock which is ahead from the start is
// noticed. A folder with tables that no time was written to, as by an earlier version, was last open at an unknown time. The
// caller has read the tables.
func (e *Engine) resumeClock() error {
	e.watch.Report(func(ahead time.Duration) {
		switch {
		case ahead > 0:
			e.log.Warn("the clock is ahead; nothing is collected until it is right or has kept step", "ahead", ahead, "for", clock.Probation)
		case ahead < 0:
			e.log.Warn("the clock is behind", "behind", -ahead)
		default:
			e.log.Info("the clock is believed again")
		}
	})
	value, closer, err := e.db.Get(keyHighTime())
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		if e.nextTable > 0 {
			e.watch.Resume(time.Time{})
		}
		return nil
	case err != nil:
		return storageError(err)
	case len(value) != 8:
		return errors.Join(fmt.Errorf("%w: the record of the time has %d bytes", ErrDamaged, len(value)), closer.Close())
	}
	high := time.UnixMicro(int64(binary.BigEndian.Uint64(value)))
	if err := closer.Close(); err != nil {
		return storageError(err)
	}
	e.watch.Resume(high)
	return nil
}

// saveClock writes down what time it is. No one waits for it: an older time only makes the next start more careful. The caller
// has entered, or is Close.
func (e *Engine) saveClock() error {
	b := e.db.NewBatch()
	if err := b.Set(keyHighTime(), binary.BigEndian.AppendUint64(nil, uint64(max(e.watch.High().UnixMicro(), 0))), nil); err != nil {
		return err
	}
	return e.applyLazily(b)
}

// collectTime returns the time in microseconds by which cells are given up. Its error matches clock.ErrAhead while the clock is
// not believed. The caller is the collector, and has entered to write.
func (e *Engine) collectTime() (int64, error) {
	now, err := e.watch.Now()
	if err != nil {
		return 0, err
	}
	if high := e.watch.High(); e.remembers && high.Sub(e.saved).Abs() >= highEvery {
		if err := e.saveClock(); err != nil {
			return 0, err
		}
		e.saved = high
	}
	return max(now.UnixMicro(), 0), nil
}
