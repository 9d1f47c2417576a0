package tsdb_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// pager pages through a store and compares each page with a model.
type pager struct {
	t     *testing.T
	rnd   *rand.Rand
	repo  *tsdb.Repository[reading]
	clock *clock
	ids   []string // of points; only the empty one if the points have none
	model map[instant]float64
}

// instant identifies a point of an entity.
type instant struct {
	time time.Time
	id   string
}

// newestFirst is the order of points, newest first.
func (a instant) newestFirst(b instant) int {
	return cmp.Or(b.time.Compare(a.time), cmp.Compare(a.id, b.id))
}

func instantOf[T any](p tsdb.Point[T]) instant { return instant{p.Time, p.ID} }

// at returns a random time; some times have expired, or will soon.
func (p *pager) at() time.Time {
	return start.Add(time.Duration(p.rnd.IntN(150)) * time.Millisecond)
}

func (p *pager) cutoff() time.Time { return p.clock.Now().Add(-90 * 24 * time.Hour) }

// point returns a random time and ID.
func (p *pager) point() instant { return instant{p.at(), p.ids[p.rnd.IntN(len(p.ids))]} }

func (p *pager) put(at instant) {
	if at.time.Before(p.cutoff()) {
		return
	}
	v := p.rnd.Float64()
	if err := p.repo.WithID(at.id).Put(p.t.Context(), roof, at.time, reading{v}); err != nil {
		p.t.Fatal(err)
	}
	p.model[at] = v
}

// change changes the data between two pages.
func (p *pager) change() {
	for range p.rnd.IntN(6) {
		p.put(p.point())
	}
	for range p.rnd.IntN(4) {
		at := p.point()
		if err := p.repo.WithID(at.id).Delete(p.t.Context(), roof, at.time); err != nil {
			p.t.Fatal(err)
		}
		delete(p.model, at)
	}
	p.clock.Add(time.Duration(p.rnd.IntN(5)) * time.Millisecond)
}

// visible returns the model's points in a query, in its order.
func (p *pager) visible(q query) (out []tsdb.Point[reading]) {
	for _, at := range slices.SortedFunc(maps.Keys(p.model), instant.newestFirst) {
		if q.In.Contains(at.time) && !at.time.Before(p.cutoff()) {
			out = append(out, tsdb.Point[reading]{Entity: roof, Time: at.time, ID: at.id, Value: reading{p.model[at]}})
		}
	}
	if q.Order == tsdb.OldestFirst {
		slices.Reverse(out)
	}
	return out
}

// run pages through a query to its end, and compares each page with the model. It returns all pages joined.
func (p *pager) run(q query, changing bool) (joined []tsdb.Point[reading]) {
	always := map[instant]bool{} // unchanged since the first page
	for _, point := range p.visible(q) {
		always[instantOf(point)] = true
	}
	next := ""
	for page := 0; ; page++ {
		size := 1 + p.rnd.IntN(9)
		want := p.visible(q)
		if n := len(joined); n > 0 {
			want = slices.DeleteFunc(want, func(w tsdb.Point[reading]) bool {
				c := instantOf(w).newestFirst(instantOf(joined[n-1]))
				return q.Order == tsdb.NewestFirst && c <= 0 || q.Order == tsdb.OldestFirst && c >= 0
			})
		}
		got, err := p.repo.Page(p.t.Context(), q.Entity, q.In, size, next, q.Order)
		if err != nil {
			p.t.Fatal(err)
		}
		if more := len(want) > size; more != (got.Next != "") || !slices.Equal(got.Points, want[:min(size, len(want))]) {
			p.t.Fatalf("page %d of %+v with size %d is %v, want %v and more %v", page, q, size, got, want, more)
		}
		joined, next = append(joined, got.Points...), got.Next
		if next == "" {
			break
		}
		if changing {
			p.change()
			there := map[instant]bool{}
			for _, point := range p.visible(q) {
				there[instantOf(point)] = true
			}
			maps.DeleteFunc(always, func(at instant, _ bool) bool { return !there[at] })
		}
	}
	seen := map[instant]bool{}
	for _, point := range joined {
		if seen[instantOf(point)] {
			p.t.Fatalf("%+v: %v appears twice", q, point)
		}
		seen[instantOf(point)] = true
	}
	for when := range always {
		if !seen[when] {
			p.t.Fatalf("%+v: %v was stored all the time, but is in no page", q, when)
		}
	}
	return joined
}

// TestPagesEqualAModel: all pages joined equal what Range yields. While points arrive, expire, and are replaced and
// deleted, each page is what the model holds after the page before.
func TestPagesEqualAModel(t *testing.T) {
	for i, opts := range []tsdb.SchemaOptions{{}, {Salts: 5, Precision: tsdb.Milliseconds}, {Precision: tsdb.Microseconds}, {Identity: true, Salts: 3}} {
		for _, keys := range [][][]byte{nil, secrets(1)} {
			t.Run(fmt.Sprintf("%v, identity %v, %d keys", opts.Precision, opts.Identity, len(keys)), func(t *testing.T) {
				testkit.OneOf(t, opts.Identity && keys != nil)
				opts.Retention = d90
				s := readings(t, opts)
				c := new(clock)
				store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return c.Now() }, CursorKeys: keys}}, s)
				p := &pager{t: t, rnd: rand.New(rand.NewPCG(7, uint64(i))), repo: s.For(store, acme), clock: c, ids: []string{""}, model: map[instant]float64{}}
				if opts.Identity {
					p.ids = []string{"a", "a.", "b", "b:1"}
				}
				for round := 0; round < 24; round += testkit.Stride(5) {
					c.Set(start.Add(90*24*time.Hour - time.Millisecond))
					for range 10 + p.rnd.IntN(80) {
						p.put(p.point())
					}
					c.Add(time.Duration(p.rnd.IntN(60)) * time.Millisecond)
					from, to := p.at(), p.at()
					if to.Before(from) {
						from, to = to, from
					}
					q := query{Entity: roof, Order: tsdb.Order(round % 2), In: []tsdb.Interval{
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
						t.Fatalf("the joined pages of %+v are %v, Range yields %v", q, joined, ranged)
					}
					p.run(q, true)
				}
			})
		}
	}
}
