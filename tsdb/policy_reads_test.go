package tsdb_test

import (
	"errors"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// reads runs all reads: without garbage collection, during it, or after it.
func (b *policyModel) reads() {
	b.Helper()
	switch b.rnd.IntN(4) {
	case 0:
		collected := make(chan error, 1)
		go func() { collected <- b.conn.Collect(b.Context()) }()
		b.ask()
		if err := <-collected; err != nil {
			b.fail("Collect: %v", err)
		}
	case 1:
		if err := b.conn.Collect(b.Context()); err != nil {
			b.fail("Collect: %v", err)
		}
		b.ask()
	default:
		b.ask()
	}
}

func (b *policyModel) ask() {
	b.Helper()
	for _, e := range b.all {
		b.askOne(e, b.shown(e))
	}
	b.askMany()
	for _, p := range []tsdb.Prefix{tsdb.AllEntities(), tsdb.NewPrefix("a"), tsdb.NewPrefix("b"), tsdb.NewPrefix("c")} {
		b.askUnder(p)
	}
}

// one converts the result of a read of one point for comparison.
func (b *policyModel) one(what string, p tsdb.Point[string], err error, want []tsdb.Point[string]) {
	b.Helper()
	if len(want) == 0 && errors.Is(err, tsdb.ErrNotFound) {
		return
	}
	if err != nil || len(want) == 0 || p != want[0] {
		b.fail("%s = %v, %v, want %.1v", what, p, err, want)
	}
}

func (b *policyModel) askOne(e tsdb.Entity, want []tsdb.Point[string]) {
	b.Helper()
	ctx := b.Context()
	p, err := b.repo.Latest(ctx, e)
	b.one("Latest", p, err, want)
	p, err = b.repo.Latest(ctx, e, tsdb.MaxStale(time.Hour))
	b.one("Latest of the cache", p, err, want)
	for _, n := range []int{1, headPoints, 100} {
		got, err := b.repo.LatestN(ctx, e, n)
		if err != nil || !slices.Equal(got, want[:min(n, len(want))]) {
			b.fail("LatestN(%d) of %v = %v, %v\nwant %v", n, e, got, err, want)
		}
	}
	for at := range b.points[e] {
		at2 := at.Add(time.Millisecond)
		p, err := b.repo.Get(ctx, e, at)
		b.one("Get", p, err, within(want, tsdb.Between(at, at.Add(1))))
		p, err = b.repo.AsOf(ctx, e, at2)
		b.one("AsOf", p, err, within(want, tsdb.Until(at2.Add(1))))
	}
	in := tsdb.AllTime()
	if b.rnd.IntN(2) == 0 {
		from := b.when()
		in = tsdb.Between(from, from.Add(time.Duration(b.rnd.Int64N(int64(10*24*time.Hour)))))
	}
	want = within(want, in)
	for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
		var got, paged []tsdb.Point[string]
		for p, err := range b.repo.Range(ctx, e, in, order) {
			if err != nil {
				b.fail("Range: %v", err)
			}
			got = append(got, p)
		}
		for next := ""; ; {
			page, err := b.repo.Page(ctx, e, in, 2, next, order)
			if err != nil {
				b.fail("Page: %v", err)
			}
			paged = append(paged, page.Points...)
			if next = page.Next; next == "" {
				break
			}
		}
		if !slices.Equal(got, want) || !slices.Equal(paged, want) {
			b.fail("Range of %v in %v, order %v = %v\nin pages %v\nwant %v", e, in, order, got, paged, want)
		}
		b.askWindows(e, in, order, want)
		slices.Reverse(want)
	}
}

// askWindows counts the points of an entity in windows.
func (b *policyModel) askWindows(e tsdb.Entity, in tsdb.Interval, order tsdb.Order, want []tsdb.Point[string]) {
	b.Helper()
	ones := window.Measure[string]{Name: "n", Of: func(string) (float64, bool) { return 1, true }}
	hours, err := window.New[string](window.Every(time.Hour), []window.Measure[string]{ones}, window.Options{})
	if err != nil {
		b.fail("%v", err)
	}
	count := 0
	for w, err := range hours.Read(b.Context(), b.repo, e, in, order) {
		if n := len(within(want, tsdb.Between(w.Start, w.End))); err != nil || int(w.Points) != n {
			b.fail("the window from %v holds %d points, %v, want %d", w.Start, w.Points, err, n)
		}
		count += int(w.Points)
	}
	if count != len(want) {
		b.fail("windows hold %d points, want %d", count, len(want))
	}
}

func within(points []tsdb.Point[string], in tsdb.Interval) (out []tsdb.Point[string]) {
	for _, p := range points {
		if in.Contains(p.Time) {
			out = append(out, p)
		}
	}
	return out
}

func (b *policyModel) askMany() {
	b.Helper()
	asked := append(slices.Clone(b.all), tsdb.NewEntity("never", "seen"))
	for _, opts := range [][]tsdb.ReadOption{nil, {tsdb.MaxStale(time.Hour)}} {
		answers, err := latestMany(b.Context(), b.repo, asked, opts...)
		if err != nil {
			b.fail("LatestMany: %v", err)
		}
		for i, a := range answers {
			b.one("LatestMany", a.Point, a.Err, b.shown(asked[i]))
		}
	}
	for _, n := range []int{2, headPoints, headPoints + 2} {
		histories, err := b.repo.LatestMany(b.Context(), asked, n)
		if err != nil {
			b.fail("LatestMany: %v", err)
		}
		for i, h := range histories {
			if want := b.shown(asked[i]); !slices.Equal(h.Points, want[:min(n, len(want))]) {
				b.fail("LatestMany(%d) of %v = %v, want %v", n, asked[i], h.Points, want)
			}
		}
	}
}

func (b *policyModel) askUnder(prefix tsdb.Prefix) {
	b.Helper()
	var want, got []tsdb.Point[string]
	var entities, wantEntities []tsdb.Entity
	for _, e := range b.all {
		if shown := b.shown(e); len(shown) > 0 && (prefix == tsdb.AllEntities() || e.Parts()[0] == prefix.Parts()[0]) {
			want, wantEntities = append(want, shown[0]), append(wantEntities, e)
		}
	}
	for p, err := range b.repo.Under(prefix).Latest(b.Context()) {
		if err != nil {
			b.fail("Under.Latest: %v", err)
		}
		got = append(got, p)
	}
	for e, err := range b.repo.Under(prefix).Entities(b.Context(), tsdb.AllTime()) {
		if err != nil {
			b.fail("Entities: %v", err)
		}
		entities = append(entities, e)
	}
	slices.SortFunc(want, func(a, b tsdb.Point[string]) int { return a.Entity.Compare(b.Entity) })
	slices.SortFunc(wantEntities, tsdb.Entity.Compare)
	if !slices.Equal(got, want) || !slices.Equal(entities, wantEntities) {
		b.fail("under %v: %v, %v\nwant %v", prefix, got, entities, want)
	}
}
