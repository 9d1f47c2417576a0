package configs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// answer is the newest point of an entity. The zero answer is none.
type answer struct {
	at    time.Time
	value int64
}

func (a answer) String() string {
	if a == (answer{}) {
		return "no point"
	}
	return fmt.Sprintf("%d in slot %d", a.value, slotOf(a.at))
}

func (e entity) answer() answer {
	i := e.newest()
	if i < 0 {
		return answer{}
	}
	return answer{timeOf(i), e[i]}
}

func of(p tsdb.Point[int64], err error) (answer, error) {
	if err != nil {
		if errors.Is(err, tsdb.ErrNotFound) {
			err = nil
		}
		return answer{}, err
	}
	return answer{p.Time.UTC(), p.Value}, nil
}

// first returns the first point of a list or of a sequence.
func first(points []tsdb.Point[int64], err error) (answer, error) {
	if err != nil || len(points) == 0 {
		return answer{}, err
	}
	return of(points[0], nil)
}

func collect[V any](seq iter.Seq2[V, error]) (all []V, err error) {
	for v, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// only returns the points of one entity.
func only(e tsdb.Entity, points []tsdb.Point[int64], err error) ([]tsdb.Point[int64], error) {
	return slices.DeleteFunc(points, func(p tsdb.Point[int64]) bool { return p.Entity != e }), err
}

// last returns the last number of the newest bucket.
func last(buckets []window.Bucket, err error) (answer, error) {
	if err != nil || len(buckets) == 0 {
		return answer{}, err
	}
	v := buckets[0].Values[0]
	return answer{v.LastTime.UTC(), int64(v.Last)}, nil
}

// door is a way to read the newest point of an entity.
type door struct {
	name string
	ask  func(context.Context, *world, *tsdb.Repository[int64], int) (answer, error)
}

// simple makes a door of a call that needs only the entity.
func simple(name string, ask func(context.Context, *tsdb.Repository[int64], tsdb.Entity, tsdb.ReadOption) (answer, error)) door {
	return door{name, func(ctx context.Context, w *world, repo *tsdb.Repository[int64], i int) (answer, error) {
		return ask(ctx, repo, w.keys.entity(i), w.parallel)
	}}
}

// below makes a door of a call that reads all entities below a prefix.
func below(name string, ask func(context.Context, *tsdb.Repository[int64], tsdb.Prefix, tsdb.ReadOption) ([]tsdb.Point[int64], error)) door {
	return door{name, func(ctx context.Context, w *world, repo *tsdb.Repository[int64], i int) (answer, error) {
		points, err := ask(ctx, repo, w.keys.site(i), w.parallel)
		return first(only(w.keys.entity(i), points, err))
	}}
}

// many makes a door of a call that reads all entities.
func many(name string, n int, opts ...tsdb.ReadOption) door {
	return door{name, func(ctx context.Context, w *world, repo *tsdb.Repository[int64], i int) (answer, error) {
		found, err := repo.LatestMany(ctx, w.entities(), n, append(opts, w.parallel)...)
		if err != nil {
			return answer{}, err
		}
		return first(found[i].Points, found[i].Err)
	}}
}

// cached is an age that the cache's values never reach: what the store itself wrote counts at once.
const cached = tsdb.MaxStale(time.Hour)

var (
	late    = start.AddDate(0, 0, 2)
	twoDays = tsdb.Between(start.Truncate(24*time.Hour), start.Truncate(24*time.Hour).AddDate(0, 0, 2))
)

var doors = []door{
	simple("Latest", func(ctx context.Context, r *tsdb.Repository[int64], e tsdb.Entity, o tsdb.ReadOption) (answer, error) {
		return of(r.Latest(ctx, e, o))
	}),
	simple("Latest, not stale", func(ctx context.Context, r *tsdb.Repository[int64], e tsdb.Entity, o tsdb.ReadOption) (answer, error) {
		return of(r.Latest(ctx, e, o, tsdb.MaxStale(0)))
	}),
	simple("Latest from the cache", func(ctx context.Context, r *tsdb.Repository[int64], e tsdb.Entity, o tsdb.ReadOption) (answer, error) {
		return of(r.Latest(ctx, e, o, cached))
	}),
	simple("Latest with a hedge", func(ctx context.Context, r *tsdb.Repository[int64], e tsdb.Entity, _ tsdb.ReadOption) (answer, error) {
		return of(r.Latest(ctx, e, tsdb.Hedge{After: time.Nanosecond, MaxRatio: 1}))
	}),
	simple("LatestN", func(ctx context.Context, r *tsdb.Repository[int64], e tsdb.Entity, o tsdb.ReadOption) (answer, error) {
		return first(r.LatestN(ctx, e, 1, o))
	}),
	simple("LatestN of three", func(ctx context.Context, r *tsdb.Repository[int64], e tsdb.Entity, o tsdb.ReadOption) (answer, error) {
		return first(r.LatestN(ctx, e, 3, o))
	}),
	simple("Range of one", func(ctx context.Context, r *tsdb.Repository[int64], e tsdb.Entity, o tsdb.ReadOption) (answer, error) {
		return first(collect(r.Range(ctx, e, tsdb.AllTime(), tsdb.Limit(1), o)))
	}),
	simple("Range, oldest first", func(ctx context.Context, r *tsdb.Repository[int64], e tsdb.Entity, o tsdb.ReadOption) (answer, error) {
		points, err := collect(r.Range(ctx, e, tsdb.AllTime(), tsdb.OldestFirst, o))
		slices.Reverse(points)
		return first(points, err)
	}),
	simple("Page", func(ctx context.Context, r *tsdb.Repository[int64], e tsdb.Entity, o tsdb.ReadOption) (answer, error) {
		page, err := r.Page(ctx, e, tsdb.AllTime(), 1, "", o)
		return first(page.Points, err)
	}),
	simple("AsOf", func(ctx context.Context, r *tsdb.Repository[int64], e tsdb.Entity, o tsdb.ReadOption) (answer, error) {
		return of(r.AsOf(ctx, e, late, o))
	}),
	many("LatestMany", 1),
	many("LatestMany from the cache", 1, cached),
	many("LatestMany of two", 2),
	below("PrefixReader.Latest", func(ctx context.Context, r *tsdb.Repository[int64], p tsdb.Prefix, o tsdb.ReadOption) ([]tsdb.Point[int64], error) {
		return collect(r.Under(p).Latest(ctx, o))
	}),
	below("PrefixReader.PageLatest", func(ctx context.Context, r *tsdb.Repository[int64], p tsdb.Prefix, o tsdb.ReadOption) (all []tsdb.Point[int64], err error) {
		for next := ""; ; {
			page, err := r.Under(p).PageLatest(ctx, 2, next, o)
			if all = append(all, page.Points...); err != nil || page.Next == "" {
				return all, err
			}
			next = page.Next
		}
	}),
	below("PrefixReader.LatestN", func(ctx context.Context, r *tsdb.Repository[int64], p tsdb.Prefix, o tsdb.ReadOption) (all []tsdb.Point[int64], err error) {
		histories, err := collect(r.Under(p).LatestN(ctx, 2, o))
		for _, h := range histories {
			all = append(all, h.Points...)
		}
		return all, err
	}),
	below("PrefixReader.Range", func(ctx context.Context, r *tsdb.Repository[int64], p tsdb.Prefix, o tsdb.ReadOption) ([]tsdb.Point[int64], error) {
		return collect(r.Under(p).Range(ctx, tsdb.AllTime(), o))
	}),
	below("PrefixReader.Merged", func(ctx context.Context, r *tsdb.Repository[int64], p tsdb.Prefix, o tsdb.ReadOption) ([]tsdb.Point[int64], error) {
		return collect(r.Under(p).Merged(ctx, tsdb.AllTime(), o))
	}),
	{"window", func(ctx context.Context, w *world, r *tsdb.Repository[int64], i int) (answer, error) {
		return last(collect(w.by.Read(ctx, r, w.keys.entity(i), tsdb.Between(start, late), tsdb.NewestFirst)))
	}},
	{"window of a rollup, or of points", func(ctx context.Context, w *world, r *tsdb.Repository[int64], i int) (answer, error) {
		return last(collect(w.rolled.Read(ctx, r, w.keys.entity(i), twoDays, w.parallel)))
	}},
	{"dynamic", func(ctx context.Context, w *world, r *tsdb.Repository[int64], i int) (answer, error) {
		if !w.format.plain {
			return of(r.Latest(ctx, w.keys.entity(i)))
		}
		field, err := dynamic.NewField(w.format.field, dynamic.Options{})
		if err != nil {
			return answer{}, err
		}
		numbers, err := dynamic.Numbers(w.schema, field)
		if err != nil {
			return answer{}, err
		}
		p, err := numbers.For(w.store, r.Tenant()).Latest(ctx, w.keys.entity(i))
		n, _ := p.Value.Number()
		return of(tsdb.Point[int64]{Time: p.Time, Value: int64(n)}, err)
	}},
}

// ask reads the newest point of each entity through each door, and all that is stored.
func (w *world) ask(ctx context.Context, m *model) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	check := func(door string, tenant, i int, got answer, err error) {
		w.answers++
		if want := m[tenant][i].answer(); err != nil || got != want {
			say("%s of %v of %v: %v, %v; want %v", door, w.keys.entity(i), ids[tenant], got, err, want)
		}
	}
	for tenant := range ids {
		repo := w.repo(tenant)
		for i := range numEntities {
			for _, d := range doors {
				got, err := d.ask(ctx, w, repo, i)
				check(d.name, tenant, i, got, err)
			}
			for _, r := range w.lasts {
				got, err := last(collect(rollup.For(r, repo).Buckets(ctx, w.keys.entity(i), tsdb.AllTime(), tsdb.NewestFirst)))
				check("rollup "+r.Name(), tenant, i, got, err)
			}
			if err := w.stored(ctx, repo, w.keys.entity(i), m[tenant][i]); err != nil {
				say("%v of %v: %v", w.keys.entity(i), ids[tenant], err)
			}
		}
		for n := 1; n <= 3; n++ {
			if err := w.newest(ctx, repo, n, m[tenant]); err != nil {
				say("%d newest points of %v: %v", n, ids[tenant], err)
			}
		}
	}
	return wrong
}

func (w *world) entities() (all []tsdb.Entity) {
	for i := range numEntities {
		all = append(all, w.keys.entity(i))
	}
	return all
}

// newest compares the n newest points of each entity, by name and below a prefix, and the list of the entities.
func (w *world) newest(ctx context.Context, repo *tsdb.Repository[int64], n int, want [numEntities]entity) error {
	named, err := repo.LatestMany(ctx, w.entities(), n, w.parallel)
	below, err2 := collect(repo.Under(tsdb.AllEntities()).LatestN(ctx, n, w.parallel))
	listed, err3 := collect(repo.Under(tsdb.AllEntities()).Entities(ctx, tsdb.AllTime(), w.parallel))
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	for i, e := range want {
		var points []tsdb.Point[int64]
		for slot := slots - 1; slot >= 0 && len(points) < n; slot-- {
			if e[slot] != 0 {
				points = append(points, tsdb.Point[int64]{Entity: w.keys.entity(i), Time: timeOf(slot), Value: e[slot]})
			}
		}
		same := func(p, q tsdb.Point[int64]) bool {
			return p.Entity == q.Entity && p.Time.Equal(q.Time) && p.Value == q.Value
		}
		w.answers++
		if !slices.EqualFunc(named[i].Points, points, same) || named[i].Err != nil {
			return fmt.Errorf("LatestMany: %v, %w; want %v", named[i].Points, named[i].Err, points)
		}
		if len(points) == 0 {
			continue
		}
		if w.answers++; len(below) == 0 || len(listed) == 0 || listed[0] != w.keys.entity(i) || !slices.EqualFunc(below[0].Points, points, same) {
			return fmt.Errorf("PrefixReader.LatestN and Entities go on with %v and %v; want %v", below, listed, points)
		}
		below, listed = below[1:], listed[1:]
	}
	if len(below)+len(listed) > 0 {
		return fmt.Errorf("PrefixReader.LatestN and Entities end with %v and %v; want no more", below, listed)
	}
	return nil
}

// stored compares all points of an entity, in both orders, and the sums of its rollups.
func (w *world) stored(ctx context.Context, repo *tsdb.Repository[int64], e tsdb.Entity, want entity) error {
	for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
		var got entity
		points, err := collect(repo.Range(ctx, e, tsdb.AllTime(), order))
		for _, p := range points {
			got[slotOf(p.Time)] = p.Value
		}
		if w.answers++; err != nil || got != want || len(points) != want.count(0, slots-1) {
			return fmt.Errorf("%v, %w; want %v", points, err, want)
		}
	}
	for _, r := range w.lasts {
		sum, wanted := int64(0), int64(0)
		for _, v := range want {
			wanted += v
		}
		total, err := rollup.For(r, repo).Total(ctx, e, tsdb.AllTime())
		if err == nil && total.Points > 0 {
			sum = int64(total.Values[0].Sum)
		}
		if w.answers++; err != nil || sum != wanted || total.Points != int64(want.count(0, slots-1)) {
			return fmt.Errorf("the rollup %s has %d points with the sum %d, %w; want %d with %d", r.Name(), total.Points, sum, err, want.count(0, slots-1), wanted)
		}
	}
	return nil
}
