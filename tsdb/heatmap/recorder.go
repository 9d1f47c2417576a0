package heatmap

import (
	"cmp"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// ErrInvalid is wrapped by the error of an argument that is not allowed.
var ErrInvalid = invalid.ErrInput

// maxColumns bounds the columns of a recorder.
const maxColumns = 64

// The limits of Options.
const (
	minColumn = time.Millisecond
	maxWidth  = 24 * time.Hour
	maxKeep   = 366 * 24 * time.Hour
)

// Options configure a Recorder. The zero value is good.
type Options struct {
	// Keep is how far back a recording reaches at least, up to 366 days. Zero is an hour. Older columns are dropped.
	Keep time.Duration
	// Column is the first width of a column, from a millisecond to a day. Zero is a second. Where 64 columns are full
	// before Keep is reached, columns are joined in pairs, so that an hour has columns of 64 seconds.
	Column time.Duration
}

func (o Options) check() error {
	if o.Column != 0 && (o.Column < minColumn || o.Column > maxWidth) {
		return invalid.New(ErrInvalid, "Column", o.Column.String(), "0 for a second, or a millisecond to a day")
	}
	return invalid.Range(ErrInvalid, "Keep", o.Keep, 0, maxKeep, "0 for an hour, or up to 366 days")
}

// Recorder records the keys of requests. It is safe for concurrent use, and one recorder can serve several connections.
//
// Its memory is bounded, whatever the load: by about 130 KiB a column for keys of 40 bytes, which is 8 MiB an hour, and by
// 800 KiB a column if every key has 256 bytes, of which longer keys are cut. The zero Recorder and nil record nothing.
type Recorder struct {
	began   time.Time
	keep    time.Duration
	serving atomic.Int32 // pictures that ServeHTTP makes

	mu      sync.Mutex
	columns columns
	rnd     *rand.Rand
	first   time.Time // of the time that the columns cover
}

// NewRecorder returns a recorder whose recording begins now. The error matches ErrInvalid.
func NewRecorder(o Options) (*Recorder, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	now := time.Now()
	return &Recorder{
		began: now, first: wall(now), keep: cmp.Or(o.Keep, time.Hour),
		columns: columns{width: cmp.Or(o.Column, time.Second)},
		rnd:     rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}, nil
}

// wall returns a time without its monotonic part, as a file has it.
func wall(t time.Time) time.Time { return t.Round(0).UTC() }

// off reports whether the recorder records nothing.
func (r *Recorder) off() bool { return r == nil || r.keep == 0 }

// now returns the time since the recorder began, which a changed wall clock does not affect.
func (r *Recorder) now() time.Duration { return time.Since(r.began) }

// column returns where to count rows of requests that began at a time. A column takes late rows as long as it is kept; rows
// that come later still count in the oldest one. The caller holds the lock.
func (r *Recorder) column(began time.Duration) *column {
	c := &r.columns
	at := r.began.Add(began)
	id := c.id(at)
	if len(c.list) > 0 {
		for id-c.list[0].id >= maxColumns && c.width*(maxColumns-1) < r.keep { // the last one has only begun
			c.widen(r.rnd)
			id = c.id(at)
		}
		if oldest := id - maxColumns + 1; oldest > c.list[0].id {
			c.drop(oldest)
			r.first = c.start(oldest)
		}
	}
	if n := len(c.list); n > 0 && c.list[n-1].id-id >= maxColumns {
		id = c.list[0].id
	}
	return c.find(id)
}

// add counts one row.
func (r *Recorder) add(k kind, began, took time.Duration, key []byte, bytes int) {
	r.mu.Lock()
	r.column(began).cells[k].add(key, bytes, micros(took), r.rnd)
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
	return &Recording{columns: r.columns.clone(), first: r.first, last: wall(r.began.Add(r.now()))}
}
