package tsdb_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// kept is the number of points in the heads of these tests.
const kept = 3

// oracle holds what a store must show: every point that was written and not deleted, with the age of its class.
type oracle struct {
	opts   tsdb.SchemaOptions
	points map[tsdb.Entity]map[pointKey]oraclePoint
}

// pointKey is the time of a point in Unix milliseconds and, in a schema with Identity, its ID.
type pointKey struct {
	ms int64
	id string
}

func pointKeyOf(p tsdb.Point[string]) pointKey { return pointKey{p.Time.UnixMilli(), p.ID} }

type oraclePoint struct {
	value string
	age   time.Duration
}

func (p oraclePoint) visible(at pointKey, now time.Time) bool {
	return !time.UnixMilli(at.ms).Before(now.Add(-p.age))
}

// put stores a point and reports whether a first-wins store would store it.
func (o *oracle) put(e tsdb.Entity, at pointKey, p oraclePoint, now time.Time) bool {
	if o.points[e] == nil {
		o.points[e] = map[pointKey]oraclePoint{}
	}
	if old, ok := o.points[e][at]; ok && o.opts.FirstWins && old.visible(at, now) {
		return old.value == p.value
	}
	o.points[e][at] = p
	return true
}

// settle is called with the points of one call: a heads-only dataset keeps as many of them as a head holds, and drops
// older ones.
func (o *oracle) settle(points []tsdb.Point[string]) {
	if !o.opts.Head.Only {
		return
	}
	times := map[tsdb.Entity][]int64{}
	for _, p := range points {
		times[p.Entity] = append(times[p.Entity], p.Time.UnixMilli())
	}
	for e, ms := range times {
		slices.Sort(ms)
		if ms = slices.Compact(ms); len(ms) > kept {
			for at := range o.points[e] {
				if at.ms < ms[len(ms)-kept] {
					delete(o.points[e], at)
				}
			}
		}
	}
}

// shown returns the visible points of an entity, newest first.
func (o *oracle) shown(e tsdb.Entity, now time.Time) (out []tsdb.Point[string]) {
	for at, p := range o.points[e] {
		if p.visible(at, now) {
			out = append(out, tsdb.Point[string]{Entity: e, Time: time.UnixMilli(at.ms).UTC(), ID: at.id, Value: p.value})
		}
	}
	slices.SortFunc(out, func(a, b tsdb.Point[string]) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.ID, b.ID)) })
	if o.opts.Head.Only {
		out = out[:min(kept, len(out))]
	}
	return out
}

var (
	minutes10 = gc.Class{Name: "m10", Policy: gc.MaxAge(10 * time.Minute)}
	minutes20 = gc.Class{Name: "m20", Policy: gc.MaxAge(20 * time.Minute)}
)

// TestHeadsAgainstBruteForce: with heads, without, and with heads only, each read returns what a plain list of points
// contains. Points are written, late, twice, expired, in two classes and formats, and deleted.
func TestHeadsAgainstBruteForce(t *testing.T) {
	for i, salts := range []int{0, 4} {
		for j, classes := range [][2]gc.Class{{minutes10, minutes20}, {minutes20, minutes10}} {
			for _, opts := range some(2*i+j, []tsdb.SchemaOptions{
				{},
				{Head: tsdb.Head{Points: kept}},
				{Head: tsdb.Head{Points: kept}, FirstWins: true},
				{Head: tsdb.Head{Points: kept, Only: true}},
			}) {
				opts.Salts, opts.Precision = salts, tsdb.Milliseconds
				t.Run(fmt.Sprintf("%+v,%d,first=%v,to=%s", opts.Head, salts, opts.FirstWins, classes[1].Name), func(t *testing.T) {
					testkit.OneOf(t, i != j)
					t.Parallel()
					headModel(t, rand.New(rand.NewPCG(uint64(salts), 7)), opts, classes, false)
				})
				t.Run(fmt.Sprintf("%+v,%d,first=%v,choosing", opts.Head, salts, opts.FirstWins), func(t *testing.T) {
					testkit.OneOf(t, i != j)
					t.Parallel()
					longBubble(t, func(t *testing.T) { headModel(t, rand.New(rand.NewPCG(uint64(salts), 8)), opts, classes, true) })
				})
			}
		}
	}
}

// headModel changes the schema's class once or, with choosing, the tenant's class repeatedly.
func headModel(t *testing.T, rnd *rand.Rand, opts tsdb.SchemaOptions, classes [2]gc.Class, choosing bool) {
	early, late := opts, opts
	early.Retention = classes[0]
	late.Retention, late.FormerClasses = classes[1], classes[:1]
	if choosing {
		early.Classes = classes[1:]
	}
	before := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.String(), early)
	after := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.Fallback(codec.JSON[string](), codec.String()), late)
	c := testkit.NewClock(start)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, before)
	ages := map[string]time.Duration{"m10": 10 * time.Minute, "m20": 20 * time.Minute}
	o := &oracle{opts: opts, points: map[tsdb.Entity]map[pointKey]oraclePoint{}}
	entities := []tsdb.Entity{tsdb.NewEntity("a", "1"), tsdb.NewEntity("a", "2"), tsdb.NewEntity("a#", "1"), tsdb.NewEntity("b", "1")}
	repo, age := before.For(store, acme), ages[classes[0].Name]
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	when := func() time.Time {
		return c.Now().Add(-time.Duration(rnd.Int64N(int64(age))) + time.Minute).Truncate(5 * time.Second)
	}
	for step := range 160 {
		if choosing && step%20 == 10 {
			class := classes[rnd.IntN(2)].Name
			assign(t, store, acme, tenants.Profile{Retention: class})
			age = ages[class]
		}
		if step == 80 && !choosing {
			repo, age = after.For(store, acme), ages[classes[1].Name]
			check(store.Ensure(ctx, after))
		}
		e := entities[rnd.IntN(len(entities))]
		value := fmt.Sprint(step)
		switch at := when(); rnd.IntN(10) {
		case 0, 1, 2:
			err := repo.Put(ctx, e, at, value)
			if ok := o.put(e, pointKey{ms: at.UnixMilli()}, oraclePoint{value, age}, c.Now()); ok != (err == nil) || err != nil && !errors.Is(err, tsdb.ErrExists) {
				t.Fatalf("Put at %v: %v", at, err)
			}
		case 3, 4:
			var batch []tsdb.Point[string]
			for range rnd.IntN(12) {
				batch = append(batch, tsdb.Point[string]{Entity: entities[rnd.IntN(len(entities))], Time: when(), Value: fmt.Sprint(step, len(batch))})
			}
			outcomes, _ := repo.PutMany(ctx, batch)
			for i, p := range batch {
				ok := o.put(p.Entity, pointKeyOf(p), oraclePoint{p.Value, age}, c.Now())
				if ok != (outcomes[i].State == tsdb.Stored) {
					t.Fatalf("PutMany: %+v", outcomes[i])
				}
			}
			o.settle(batch)
		case 5:
			in := pointKey{ms: at.UnixMilli()}
			_, there := o.points[e][in]
			there = there && o.points[e][in].visible(in, c.Now())
			stored, err := repo.PutIfAbsent(ctx, e, at, value)
			check(err)
			if stored == there {
				t.Fatalf("PutIfAbsent = %v; a point is stored: %v", stored, there)
			}
			if stored {
				o.put(e, pointKey{ms: at.UnixMilli()}, oraclePoint{value, age}, c.Now())
			}
		case 6:
			if shown := o.shown(e, c.Now()); len(shown) > 0 { // one that a read must count
				at = shown[rnd.IntN(min(kept, len(shown)))].Time
			}
			check(repo.Delete(ctx, e, at))
			delete(o.points[e], pointKey{ms: at.UnixMilli()})
		case 7:
			in := tsdb.Between(at, at.Add(time.Duration(rnd.Int64N(int64(3*time.Minute)))))
			if rnd.IntN(5) == 0 {
				in = tsdb.AllTime()
			}
			n, err := repo.DeleteRange(ctx, e, in)
			check(err)
			for at := range o.points[e] {
				if in.Contains(time.UnixMilli(at.ms)) {
					delete(o.points[e], at)
					n--
				}
			}
			if n != 0 {
				t.Fatalf("DeleteRange is off by %d", n)
			}
		case 8:
			if rnd.IntN(4) > 0 {
				continue
			}
			n, err := repo.DeletePrefix(ctx, tsdb.NewPrefix("a"))
			check(err)
			n -= len(o.points[entities[0]]) + len(o.points[entities[1]])
			delete(o.points, entities[0])
			delete(o.points, entities[1])
			if n != 0 {
				t.Fatalf("DeletePrefix is off by %d", n)
			}
		case 9:
			c.Add(time.Duration(rnd.Int64N(int64(3 * time.Minute))))
		}
		compareToOracle(t, ctx, repo, o, e, c.Now(), when())
		if step%3 == 0 {
			manyToOracle(t, repo, o, entities, c.Now())
		}
	}
}

// manyToOracle compares the reads of many entities with the oracle.
func manyToOracle(t *testing.T, repo *tsdb.Repository[string], o *oracle, entities []tsdb.Entity, now time.Time) {
	t.Helper()
	asked := append(slices.Clone(entities), tsdb.NewEntity("never", "seen"), entities[0])
	answers, err := latestMany(t.Context(), repo, asked)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		want := o.shown(asked[i], now)
		if len(want) == 0 && !errors.Is(a.Err, tsdb.ErrNotFound) || len(want) > 0 && a.Point != want[0] {
			t.Fatalf("LatestMany: %v is %+v, want %v", asked[i], a, want)
		}
	}
	for _, k := range []int{0, 2, kept, kept + 2} {
		histories, err := repo.LatestMany(t.Context(), asked, k)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range histories {
			if want := o.shown(asked[i], now); h.Entity != asked[i] || !slices.Equal(h.Points, want[:min(k, len(want))]) {
				t.Fatalf("LatestMany(%d): %v is %+v, want %v", k, asked[i], h, want)
			}
		}
	}
	for _, site := range []string{"a", "a#", "b", ""} {
		prefix := tsdb.NewPrefix(site)
		if site == "" {
			prefix = tsdb.AllEntities()
		}
		var want, got []tsdb.Point[string]
		for _, e := range entities {
			if shown := o.shown(e, now); len(shown) > 0 && (site == "" || e.Parts()[0] == site) {
				want = append(want, shown[0])
			}
		}
		slices.SortFunc(want, func(a, b tsdb.Point[string]) int { return a.Entity.Compare(b.Entity) })
		for p, err := range repo.Under(prefix).Latest(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p)
		}
		var names []tsdb.Entity
		for e, err := range repo.Under(prefix).Entities(t.Context(), tsdb.AllTime()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, e)
		}
		if !slices.Equal(got, want) || !slices.EqualFunc(names, want, func(e tsdb.Entity, p tsdb.Point[string]) bool { return e == p.Entity }) {
			t.Fatalf("under %q: %v, %v\nwant %v", site, got, names, want)
		}
	}
}

// compareToOracle compares each read of one entity with the oracle.
func compareToOracle(t *testing.T, ctx context.Context, repo *tsdb.Repository[string], o *oracle, e tsdb.Entity, now, at time.Time) {
	t.Helper()
	want := o.shown(e, now)
	first := func(points []tsdb.Point[string], keep func(tsdb.Point[string]) bool) tsdb.Point[string] {
		i := slices.IndexFunc(points, keep)
		if i < 0 {
			return tsdb.Point[string]{}
		}
		return points[i]
	}
	one := func(p tsdb.Point[string], err error) tsdb.Point[string] {
		if err != nil && !errors.Is(err, tsdb.ErrNotFound) {
			t.Fatal(err)
		}
		return p
	}
	for name, pair := range map[string][2]tsdb.Point[string]{
		"Latest": {one(repo.Latest(ctx, e)), first(want, func(tsdb.Point[string]) bool { return true })},
		"AsOf":   {one(repo.AsOf(ctx, e, at)), first(want, func(p tsdb.Point[string]) bool { return !p.Time.After(at) })},
		"Get":    {one(repo.Get(ctx, e, at)), first(want, func(p tsdb.Point[string]) bool { return p.Time.Equal(at) })},
	} {
		if pair[0] != pair[1] {
			t.Fatalf("%s = %v, want %v", name, pair[0], pair[1])
		}
	}
	for _, k := range []int{1, kept - 1, kept, kept + 1, 50} {
		got, err := repo.LatestN(ctx, e, k)
		if err != nil || !slices.Equal(got, want[:min(k, len(want))]) {
			t.Fatalf("LatestN(%d) = %v, %v\nwant %v", k, got, err, want[:min(k, len(want))])
		}
	}
	in := tsdb.Between(at.Add(-5*time.Minute), at)
	var inside []tsdb.Point[string]
	for _, p := range want {
		if in.Contains(p.Time) {
			inside = append(inside, p)
		}
	}
	for _, order := range []tsdb.Order{tsdb.NewestFirst, tsdb.OldestFirst} {
		limit := cmp.Or(len(inside)/2, 1)
		var all, some []tsdb.Point[string]
		for p, err := range repo.Range(ctx, e, in, order) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		for p, err := range repo.Range(ctx, e, in, order, tsdb.Limit(limit)) {
			if err != nil {
				t.Fatal(err)
			}
			some = append(some, p)
		}
		if !slices.Equal(all, inside) || !slices.Equal(some, inside[:min(limit, len(inside))]) {
			t.Fatalf("Range = %v, with Limit(%d) %v\nwant %v", all, limit, some, inside)
		}
		slices.Reverse(inside)
	}
}
