package heatmap

import (
	"cmp"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// maxColumns bounds the columns of a recorder.
const maxColumns = 64

const maxKeep = 366 * 24 * time.Hour

// Options configure a Recorder. The zero value is good.
type Options struct {
	// Keep is how far back a recording reaches at least, up to 366 days. Zero is an hour. Older columns are dropped.
	Keep time.Duration
	// Column is the first width of a column, from a millisecond to a day. Zero is a second. Where 64 columns are full
	// before Keep is reached, columns are joined in pairs, so that an hour has columns of 64 seconds.
	Column time.Duration
}

func (o Options) check() error {
	if o.Column != 0 && (o.Column < heat.MinWidth || o.Column > heat.MaxWidth) {
		return invalid.New(invalid.ErrInput, "Column", o.Column.String(), "0 for a second, or a millisecond to a day")
	}
	return invalid.Range(invalid.ErrInput, "Keep", o.Keep, 0, maxKeep, "0 for an hour, or up to 366 days")
}

// Recorder records the keys of requests. It is safe for concurrent use, and one recorder can serve several connections.
//
// Its memory is bounded, whatever the load: by about 130 KiB a column for keys of 40 bytes, which is 8 MiB an hour, and
// by 800 KiB a column if every key has 256 bytes, of which longer keys are cut. The zero Recorder and nil record
// nothing.
type Recorder struct {
	began time.Time
	keep  time.Duration

	mu      sync.Mutex
	columns heat.Columns
	rnd     *rand.Rand
	first   time.Time // of the time that the columns cover
}

// NewRecorder returns a recorder whose recording begins now. The error matches tsdb.ErrInvalid.
func NewRecorder(o Options) (*Recorder, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	now := time.Now()
	return &Recorder{
		began: now, first: wall(now), keep: cmp.Or(o.Keep, time.Hour),
		columns: heat.Columns{Width: cmp.Or(o.Column, time.Second)},
		rnd:     rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}, nil
}

// wall returns a time without its monotonic part, as a file has it.
func wall(t time.Time) time.Time { return t.Round(0).UTC() }

// off reports whether the recorder records nothing.
func (r *Recorder) off() bool { return r == nil || r.keep == 0 }

// now returns the time since the recorder began, which a changed wall clock does not affect.
func (r *Recorder) now() time.Duration { return time.Since(r.began) }

// column returns where to count rows of requests that began at a time. A column takes late rows as long as it is kept;
// rows that come later still count in the oldest one. The caller holds the lock.
func (r *Recorder) column(began time.Duration) *heat.Column {
	c := &r.columns
	at := r.began.Add(began)
	id := c.ID(at)
	if len(c.List) > 0 {
		for id-c.List[0].ID >= maxColumns && c.Width*(maxColumns-1) < r.keep { // the last one has only begun
			c.Widen(r.rnd)
			id = c.ID(at)
		}
		if oldest := id - maxColumns + 1; oldest > c.List[0].ID {
			c.Drop(oldest)
			r.first = c.Start(oldest)
		}
	}
	if n := len(c.List); n > 0 && c.List[n-1].ID-id >= maxColumns {
		id = c.List[0].ID
	}
	return c.Find(id)
}

// add counts one row.
func (r *Recorder) add(k heat.Kind, began, took time.Duration, key []byte, bytes int) {
	r.mu.Lock()
	r.column(began).Cells[k].Add(key, bytes, micros(took), r.rnd)
	r.mu.Unlock()
}

func micros(d time.Duration) uint32 { return uint32(min(max(d.Microseconds(), 0), math.MaxUint32)) }

// Recording returns a copy of what was recorded until now. Requests wait while it is made, for a few milliseconds at
// most.
func (r *Recorder) Recording() *Recording {
	if r.off() {
		return &Recording{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Recording{heat.Hold(&heat.Recording{Columns: r.columns.Clone(), First: r.first, Last: wall(r.began.Add(r.now()))})}
}
