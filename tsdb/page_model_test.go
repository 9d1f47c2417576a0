package tsdb_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// pager pages through a store and a model of it side by side.
type pager struct {
	t     *testing.T
	rnd   *rand.Rand
	repo  *tsdb.Repository[reading]
	clock *clock
	model map[time.Time]float64
}

// at returns a random time; some of them are past their retention, or will be soon.
func (p *pager) at() time.Time {
	return start.Add(time.Duration(p.rnd.IntN(150)) * time.Millisecond)
}

func (p *pager) cutoff() time.Time { return p.clock.now.Add(-90 * 24 * time.Hour) }

func (p *pager) put(when time.Time) {
	if when.Before(p.cutoff()) {
		return
	}
	v := p.rnd.Float64()
	if err := p.repo.Put(p.t.Context(), roof, when, reading{v}); err != nil {
		p.t.Fatal(err)
	}
	p.model[when] = v
}

// change is what happens between two pages.
func (p *pager) change() {
	for range p.rnd.IntN(6) {
		p.put(p.at())
	}
	for range p.rnd.IntN(4) {
		when := p.at()
		if err := p.repo.Delete(p.t.Context(), roof, when); err != nil {
			p.t.Fatal(err)
		}
		delete(p.model, when)
	}
	p.clock.now = p.clock.now.Add(time.Duration(p.rnd.IntN(5)) * time.Millisecond)
}

// visible returns the model's points in a query, in its order.
func (p *pager) visible(q tsdb.Query) (out []tsdb.Point[reading]) {
	for _, when := range slices.SortedFunc(maps.Keys(p.model), time.Time.Compare) {
		if q.In.Contains(when) && !when.Before(p.cutoff()) {
			out = append(out, tsdb.Point[reading]{Entity: roof, Time: when, Value: reading{p.model[when]}})
		}
	}
	if q.Order == tsdb.NewestFirst {
		slices.Reverse(out)
	}
	return out
}

// run pages through a query to its end and compares each page with the model. It returns all pages joined.
func (p *pager) run(q tsdb.Query, changing bool) (joined []tsdb.Point[reading]) {
	always := map[time.Time]bool{} // there, and untouched, as long as the pages went on
	for _, point := range p.visible(q) {
		always[point.Time] = true
	}
	next := ""
	for page := 0; ; page++ {
		size := 1 + p.rnd.IntN(9)
		want := p.visible(q)
		if n := len(joined); n > 0 {
			want = slices.DeleteFunc(want, func(w tsdb.Point[reading]) bool {
				c := w.Time.Compare(joined[n-1].Time)
				return q.Order == tsdb.NewestFirst && c >= 0 || q.Order == tsdb.OldestFirst && c <= 0
			})
		}
		got, err := p.repo.Page(p.t.Context(), q, size, next)
		if err != nil {
			p.t.Fatal(err)
		}
		if more := len(want) > size; more != (got.Next != "") || !slices.Equal(got.Points, want[:min(size, len(want))]) {
			p.t.Fatalf("page %d of %+v by %d is %v, want %v and more %v", page, q, size, got, want, more)
		}
		joined, next = append(joined, got.Points...), got.Next
		if next == "" {
			break
		}
		if changing {
			p.change()
			there := map[time.Time]bool{}
			for _, point := range p.visible(q) {
				there[point.Time] = true
			}
			maps.DeleteFunc(always, func(when time.Time, _ bool) bool { return !there[when] })
		}
	}
	seen := map[time.Time]bool{}
	for _, point := range joined {
		if seen[point.Time] {
			p.t.Fatalf("%+v: %v comes twice", q, point)
		}
		seen[point.Time] = true
	}
	for when := range always {
		if !seen[when] {
			p.t.Fatalf("%+v: %v was there all the time, and is in no page", q, when)
		}
	}
	return joined
}

// TestPagesEqualAModel: all pages together are what Range yields; and while points arrive, are replaced and deleted and
// expire, each page is what the model has behind the one before it.
func TestPagesEqualAModel(t *testing.T) {
	for i, opts := range []tsdb.SchemaOptions{{}, {Salts: 5, Precision: tsdb.Milliseconds}, {Precision: tsdb.Microseconds}} {
		for _, keys := range [][][]byte{nil, secrets(1)} {
			t.Run(fmt.Sprintf("%v, %d keys", opts.Precision, len(keys)), func(t *testing.T) {
				opts.Retention = d90
				s := readings(t, opts)
				c := &clock{}
				store, _ := tsdbtest.Open(t, tsdbtest.Options{Clock: func() time.Time { return c.now }, CursorKeys: keys}, s)
				p := &pager{t: t, rnd: rand.New(rand.NewPCG(7, uint64(i))), repo: s.For(store, acme), clock: c, model: map[time.Time]float64{}}
				for round := range 24 {
					c.now = start.Add(90*24*time.Hour - time.Millisecond)
					for range 10 + p.rnd.IntN(80) {
						p.put(p.at())
					}
					c.now = c.now.Add(time.Duration(p.rnd.IntN(60)) * time.Millisecond)
					from, to := p.at(), p.at()
					if to.Before(from) {
						from, to = to, from
					}
					q := tsdb.Query{Entity: roof, Order: tsdb.Order(round % 2), In: []tsdb.Interval{
						{}, tsdb.Since(from), tsdb.Until(to), tsdb.Between(from, to), tsdb.Between(from, to).OpenStart().ClosedEnd(),
					}[p.rnd.IntN(5)]}
					joined := p.run(q, false)
					var ranged []tsdb.Point[reading]
					for point, err := range p.repo.Range(t.Context(), roof, q.In, q.Order) {
						if err != nil {
							t.Fatal(err)
						}
						ranged = append(ranged, point)
					}
					if !slices.Equal(joined, ranged) {
						t.Fatalf("the pages of %+v together are %v, Range yields %v", q, joined, ranged)
					}
					p.run(q, true)
				}
			})
		}
	}
}
