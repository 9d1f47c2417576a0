package rollup

import (
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// definition is implemented by every *Rollup[T].
type definition interface {
	Name() string
	Grid() window.Grid
	describe() catalog.Rollup
	follows(from definition, kept []gc.Policy) error
	computedWidth() time.Duration
	fromCatalog(entry catalog.Rollup, fields bool) error
}

func init() {
	inside.Describe = func(r any) (catalog.Rollup, bool) {
		d, ok := r.(definition)
		if !ok {
			return catalog.Rollup{}, false
		}
		return d.describe(), true
	}
	inside.Follows = func(r, from any, kept []gc.Policy) error {
		finer, _ := from.(definition)
		return r.(definition).follows(finer, kept)
	}
	inside.CheckSource = checkSource
	inside.RollupFromCatalog = func(r any, entry catalog.Rollup, fields bool) error { return r.(definition).fromCatalog(entry, fields) }
	inside.WidestBucket = func(r any) time.Duration { return r.(definition).computedWidth() }
}

// follows rejects a finer rollup whose buckets are not each inside one bucket of r, and a source whose policies
// remove data before a bucket of r closes.
func (r *Rollup[T]) follows(finer definition, kept []gc.Policy) error {
	if r == nil {
		return invalid.New(ErrInvalid, "rollup", "nil", "a rollup from Define")
	}
	if finer != nil {
		if at, ok := nested(finer.Grid(), r.grid); !ok {
			return invalid.New(ErrInvalid, "From", invalid.Quote(finer.Name())+" of "+finer.Grid().String(),
				"a grid with each bucket inside one bucket of "+r.grid.String()+"; one of these starts at "+instant.Text(at.UTC()))
		}
	}
	return outlived(&r.entry, r.grid, kept)
}

// checkSource checks the policies of a derived rollup's source, as a schema does, for a rollup known only from the
// catalogue.
func checkSource(r catalog.Rollup, kept []gc.Policy) error {
	every, _, _ := strings.Cut(r.Every, " from ") // the first day of a week does not change its length
	grid, err := window.Parse(every)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(r.Zone)
	if err != nil {
		return err
	}
	return outlived(&r, grid.In(zone), kept)
}

// outlived rejects policies that remove a bucket's source before the bucket closes.
func outlived(r *catalog.Rollup, grid window.Grid, kept []gc.Policy) error {
	least := longest(grid) + time.Duration(r.Late)*time.Millisecond
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
		return invalid.New(ErrInvalid, what, age.String(), "more than the longest bucket and its lateness, "+least.String()+
			": the source of a bucket must not expire before the bucket closes")
	}
	return nil
}

// samples calls look with starts of a grid's buckets until it returns false. It samples one start each month
// from 1970 to 2049, when zones may have had another offset; four a day for two years, with all changes of clocks; and 3,000
// consecutive ones.
func samples(g window.Grid, look func(start time.Time) bool) {
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

// widestBucket returns the width of the longest bucket. The first call samples the grid; later ones return its result.
func (r *Rollup[T]) widestBucket() time.Duration { return r.widest() }

// nested reports whether each bucket of a fine grid is inside one bucket of a coarse grid. If not, it returns a time
// at which it is not.
func nested(fine, coarse window.Grid) (at time.Time, ok bool) {
	ok = true
	samples(coarse, func(start time.Time) bool {
		if ok = fine.Start(start).Equal(start); !ok {
			at = start
		}
		return ok
	})
	return at, ok
}

// longest returns the width of a grid's longest bucket.
func longest(g window.Grid) (width time.Duration) {
	samples(g, func(start time.Time) bool {
		width = max(width, g.Next(start).Sub(start))
		return true
	})
	return width
}
