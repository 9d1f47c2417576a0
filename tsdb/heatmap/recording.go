package heatmap

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// mostColumns bounds the columns of a recording that was merged or read from a file.
const mostColumns = 256

// Recording is what a recorder has recorded. It never changes, so it is safe for concurrent use. The zero Recording and
// nil are empty.
type Recording struct {
	columns     columns
	first, last time.Time // of the time that it covers
	ranked      bool
}

// Totals are exact counts of rows.
type Totals struct {
	Reads, Writes, Failures uint64
	// Bytes are those of rows that were read or written.
	Bytes uint64
}

// Totals returns the counts of the whole recording.
func (r *Recording) Totals() (t Totals) {
	for _, col := range r.list() {
		t.Reads = sum(t.Reads, col.cells[reads].rows)
		t.Writes = sum(t.Writes, col.cells[writes].rows)
		t.Failures = sum(t.Failures, col.cells[failures].rows)
		t.Bytes = sum(t.Bytes, sum(col.cells[reads].bytes, col.cells[writes].bytes))
	}
	return t
}

// Interval returns the time that the recording covers. Both are zero in an empty Recording.
func (r *Recording) Interval() (from, to time.Time) {
	if r == nil {
		return time.Time{}, time.Time{}
	}
	return r.first, r.last
}

func (r *Recording) list() []*column {
	if r == nil {
		return nil
	}
	return r.columns.list
}

// covered returns how long a column was recorded, which is less than its width at both ends of a recording.
func (r *Recording) covered(col *column) time.Duration {
	from, to := r.columns.start(col.id), r.columns.start(col.id+1)
	if r.first.After(from) {
		from = r.first
	}
	if r.last.Before(to) {
		to = r.last
	}
	return max(to.Sub(from), 0)
}

// Merge returns one recording of several, such as those of all processes that use a table, or of one process after another. Columns get
// the width of the widest, and where there would be more than 256 they are joined in pairs. The clocks of the
// processes decide which columns belong together. It fails with ErrInvalid if some have ranks in place of names, because ranks of different
// recordings have no common meaning, or if widths are not multiples of each other by a power of two. Nil recordings count as empty.
func Merge(recordings ...*Recording) (*Recording, error) {
	out := new(Recording)
	rnd := rand.New(rand.NewPCG(1, 2)) // the same recordings give the same result
	n := 0
	for _, r := range recordings {
		if len(r.list()) == 0 {
			continue
		}
		if n++; n == 1 {
			*out = *r
			out.columns = r.columns.clone()
			continue
		}
		if out.ranked || r.ranked {
			return nil, invalid.New(ErrInvalid, "recording", "one with ranks in place of names", "recordings with names; merge first, then rank")
		}
		if err := out.merge(r, rnd); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *Recording) merge(o *Recording, rnd *rand.Rand) error {
	other := o.columns
	if other.width < r.columns.width {
		other = other.clone()
	}
	for r.columns.width < other.width {
		r.columns.widen(rnd)
	}
	for other.width < r.columns.width {
		other.widen(rnd)
	}
	if r.columns.width != other.width {
		return invalid.New(ErrInvalid, "columns", fmt.Sprintf("%v and %v wide", r.columns.width, other.width), "widths that differ by a power of two")
	}
	for _, col := range other.list {
		r.columns.find(col.id).join(col, rnd)
	}
	for r.columns.span() > mostColumns {
		r.columns.widen(rnd)
	}
	if o.first.Before(r.first) {
		r.first = o.first
	}
	if o.last.After(r.last) {
		r.last = o.last
	}
	return nil
}
