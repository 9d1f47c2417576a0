package engine

import (
	"encoding/binary"
	"time"

	"github.com/tidemark-go/tidemark/internal/clock"
)

// highEvery is how often the engine writes the time to the folder.
const highEvery = time.Minute

// Watch returns the watch that checks the engine's clock.
func (e *Engine) Watch() *clock.Watch { return e.watch }

// resumeClock reads when the folder was last open, so that a clock that is ahead from the start is noticed. A folder
// that has tables but no stored time, as earlier versions left it, was last open at an unknown time. The caller has
// read the tables.
func (e *Engine) resumeClock() error {
	e.watch.Report(func(ahead time.Duration) {
		switch {
		case ahead > 0:
			e.log.Warn("the clock is ahead; garbage collection is paused until the clock is right or has been steady", "ahead", ahead, "for", clock.Probation)
		case ahead < 0:
			e.log.Warn("the clock is behind", "behind", -ahead)
		default:
			e.log.Info("the clock is trusted again")
		}
	})
	high, found, err := readNumber(e.db, keyHighTime(), 8, "record of the time")
	switch {
	case err != nil:
		return err
	case found:
		e.watch.Resume(time.UnixMicro(int64(high)))
	case e.nextTable == 0: // a new folder: if the process is killed within highEvery, the next one knows when
		return e.saveClock()
	default:
		e.watch.Resume(time.Time{})
	}
	return nil
}

// saveClock writes the time to the folder, without a sync: an older time only makes the next start more careful. The
// caller has called enter, or is Open or Close.
func (e *Engine) saveClock() error {
	b := e.db.NewBatch()
	if err := b.Set(keyHighTime(), binary.BigEndian.AppendUint64(nil, uint64(max(e.watch.High().UnixMicro(), 0))), nil); err != nil {
		return err
	}
	return e.applyLazily(b)
}

// collectTime returns the time in microseconds by which cells expire. Its error matches clock.ErrAhead while the clock
// is not trusted. The caller is the collector, and has called enterWrite.
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
