// Package nest checks that each bucket of a rollup can be computed from its source: points, or a finer rollup.
package nest

import (
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Grid is what is needed of a window.Grid.
type Grid interface {
	Start(t time.Time) time.Time
	Next(t time.Time) time.Time
	String() string
}

// Definition is what of a rollup does not depend on the type of its values.
type Definition struct {
	Entry catalog.Rollup
	Grid  Grid
	// Width returns how long the longest bucket is; 0 if only the stored buckets can be read.
	Width func() time.Duration
	// Is reports whether a value is a rollup of the package that makes definitions. Types that embed one have its
	// definition too.
	Is func(rollup any) bool
	// Source reads the buckets. It depends on the type of the values: package window declares the interface.
	Source any
}

// Follows rejects a finer rollup whose buckets are not each inside one bucket of d, and a source whose policies
// remove data before a bucket of d closes. Nil is for the points.
func (d *Definition) Follows(finer *Definition, kept []gc.Policy) error {
	if finer != nil {
		if at, ok := Nested(finer.Grid, d.Grid); !ok {
			return invalid.New(rowkey.ErrInvalid, "From", invalid.Quote(finer.Entry.Name)+" of "+finer.Grid.String(),
				"a grid with each bucket inside one bucket of "+d.Grid.String()+"; one of these starts at "+instant.Text(at.UTC()))
		}
	}
	return CheckSource(&d.Entry, d.Grid, kept)
}

// CheckSource rejects policies that remove a bucket's source before the bucket closes.
func CheckSource(r *catalog.Rollup, grid Grid, kept []gc.Policy) error {
	least := Longest(grid) + time.Duration(r.Late)*time.Millisecond
	for _, p := range kept {
		age, bounded, err := p.PointAge()
		if err != nil {
			return err
		}
		if !bounded || age > least {
			continue
		}
		what := "the retention of the points"
		if r.From != "" {
			what = "Retention of " + invalid.Quote(r.From) + ", or RollupAges,"
		}
		return invalid.New(rowkey.ErrInvalid, what, age.String(), "more than the longest bucket and its lateness, "+least.String()+
			": the source of a bucket must not expire before the bucket closes")
	}
	return nil
}

// Samples calls look with starts of a grid's buckets until it returns false. It samples one start each month from 1970
// to 2049, when zones may have had another offset; four a day for two years, with all changes of clocks; and 3,000
// consecutive ones.
func Samples(g Grid, look func(start time.Time) bool) {
	at := func(t time.Time) bool { return look(g.Next(t)) }
	for month := range 12 * 80 {
		if !at(time.Date(1970, time.Month(month+1), 1, 0, 0, 0, 0, time.UTC)) {
			return
		}
	}
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for quarter := range 4 * 2 * 366 {
		if !at(from.Add(time.Duration(quarter) * 6 * time.Hour)) {
			return
		}
	}
	for range 3000 {
		next := g.Next(from)
		if !next.After(from) || !look(next) {
			return
		}
		from = next
	}
}

// Nested reports whether each bucket of a fine grid is inside one bucket of a coarse grid. If not, it returns a time
// at which it is not.
func Nested(fine, coarse Grid) (at time.Time, ok bool) {
	ok = true
	Samples(coarse, func(start time.Time) bool {
		if ok = fine.Start(start).Equal(start); !ok {
			at = start
		}
		return ok
	})
	return at, ok
}

// Longest returns the width of a grid's longest bucket.
func Longest(g Grid) (width time.Duration) {
	Samples(g, func(start time.Time) bool {
		width = max(width, g.Next(start).Sub(start))
		return true
	})
	return width
}
