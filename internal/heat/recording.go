package heat

import "time"

// The limits of a recording's columns: their number, and the width that the first ones have.
const (
	MostColumns = 256
	MinWidth    = time.Millisecond
	MaxWidth    = 24 * time.Hour
)

// Recording is what was recorded. It never changes, so it is safe for concurrent use. The zero Recording and
// nil are empty.
type Recording struct {
	Columns     Columns
	First, Last time.Time // of the time that it covers
	Ranked      bool      // ranks are in place of names
}

// Totals are exact counts of rows.
type Totals struct {
	Reads, Writes, Failures uint64
	// Bytes are those of rows that were read or written.
	Bytes uint64
}

// Totals returns the counts of the whole recording.
func (r *Recording) Totals() (t Totals) {
	for _, col := range r.List() {
		t.Reads = Sum(t.Reads, col.Cells[Reads].Rows)
		t.Writes = Sum(t.Writes, col.Cells[Writes].Rows)
		t.Failures = Sum(t.Failures, col.Cells[Failures].Rows)
		t.Bytes = Sum(t.Bytes, Sum(col.Cells[Reads].Bytes, col.Cells[Writes].Bytes))
	}
	return t
}

// List returns the columns.
func (r *Recording) List() []*Column {
	if r == nil {
		return nil
	}
	return r.Columns.List
}

// Covered returns how long a column was recorded, which is less than its width at both ends of a recording.
func (r *Recording) Covered(col *Column) time.Duration {
	from, to := r.Columns.Start(col.ID), r.Columns.Start(col.ID+1)
	if r.First.After(from) {
		from = r.First
	}
	if r.Last.Before(to) {
		to = r.Last
	}
	return max(to.Sub(from), 0)
}

// Handle holds a recording in a public type, which embeds it under an unexported name.
type Handle struct{ r *Recording }

// Hold returns a handle of a recording.
func Hold(r *Recording) Handle { return Handle{r} }

func (h Handle) held() *Recording { return h.r }

// Of returns the recording of a value that embeds a handle. It is nil in zero values.
func Of(v interface{ held() *Recording }) *Recording { return v.held() }
