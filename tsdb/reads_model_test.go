package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestAllReadsAgreeWithAModel uses every way to write and delete, through repositories and writers, for two tenants
// with the same names for everything, one a prefix of the other, while points expire. Every read returns the model's
// points: from rows, heads, the cache and pages, with and without views.
func TestAllReadsAgreeWithAModel(t *testing.T) {
	for i, opts := range []tsdb.SchemaOptions{
		{},
		{FirstWins: true},
		{Head: tsdb.Head{Points: kept}},
		{Head: tsdb.Head{Points: kept}, FirstWins: true},
		{Head: tsdb.Head{Points: kept, Only: true}},
		{Identity: true},
		{Identity: true, FirstWins: true},
	} {
		for _, salts := range []int{0, 4} {
			opts.Salts, opts.Precision, opts.Retention = salts, tsdb.Milliseconds, minutes20
			t.Run(fmt.Sprintf("%+v,salts=%d,first=%v,identity=%v", opts.Head, salts, opts.FirstWins, opts.Identity), func(t *testing.T) {
				testkit.OneOf(t, salts > 0 && (i == 3 || i == 5))
				t.Parallel()
				for _, seed := range some(i%3, []uint64{0, 1, 2}) {
					views := []tenant.ID(nil)
					if seed == 1 {
						views = []tenant.ID{acme, acme2}
					}
					bubble(t, func(t *testing.T) { modelReads(t, rand.New(rand.NewPCG(seed, uint64(i))), opts, views) })
				}
			})
		}
	}
}

// modelTenant is one tenant's repository and the points that it must show.
type modelTenant struct {
	*oracle
	repo     *tsdb.Repository[string]
	entities []tsdb.Entity
}

func modelReads(t *testing.T, rnd *rand.Rand, opts tsdb.SchemaOptions, views []tenant.ID) {
	s := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.String(), opts)
	c := testkit.NewClock(start)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now, Cache: tsdb.CacheOptions{Entries: 6, MaxAge: time.Hour}}, ViewsFor: views}, s)
	linger := time.Duration(-1)
	if opts.Head.Only { // a call must be one batch: a head drops points of a batch that it would keep if the batch were split
		if linger = time.Millisecond; overTCP() {
			linger = time.Hour // on the real clock: until Flush
		}
	}
	w := writer(t, store, tsdb.WriterOptions{Linger: linger})
	ctx := t.Context()
	var tenants []*modelTenant
	for _, name := range []string{"acme", "acme2"} {
		m := &modelTenant{oracle: &oracle{opts: opts, points: map[tsdb.Entity]map[pointKey]oraclePoint{}}, repo: s.For(store, tenant.MustParse(name))}
		for _, parts := range [][2]string{{"a", "1"}, {"a", "12"}, {"a#", "1"}, {"a1", "2"}} {
			m.entities = append(m.entities, tsdb.NewEntity(parts[0], parts[1]))
		}
		tenants = append(tenants, m)
	}
	const age = 20 * time.Minute
	when := func() time.Time {
		return c.Now().Add(-time.Duration(rnd.Int64N(int64(age))) + time.Minute).Truncate(30 * time.Second)
	}
	someID := func() string { return "" }
	if opts.Identity {
		someID = func() string { return []string{"a", "b", "b-2"}[rnd.IntN(3)] }
	}
	for step := range 150 {
		m := tenants[rnd.IntN(2)]
		e := m.entities[rnd.IntN(len(m.entities))]
		at := when()
		if at.Before(c.Now().Add(-age)) {
			at = c.Now().Truncate(30 * time.Second)
		}
		value := fmt.Sprint(m.repo.Tenant(), step)
		p, id := oraclePoint{value, age}, someID()
		repo := m.repo
		if opts.Identity {
			repo = repo.WithID(id)
		}
		var err error
		switch rnd.IntN(11) {
		case 0, 1:
			err = m.written(e, at, id, p, c.Now(), repo.Put(ctx, e, at, value))
		case 2:
			var reported tsdb.Outcome
			err = errors.Join(repo.Via(w).EnqueueFunc(ctx, e, at, value, func(o tsdb.Outcome) { reported = o }), w.Flush(ctx))
			if err == nil {
				err = m.written(e, at, id, p, c.Now(), reported.Err)
			}
		case 3, 4:
			var batch []tsdb.Point[string]
			for range rnd.IntN(12) {
				at := when()
				if at.Before(c.Now().Add(-age)) {
					continue
				}
				batch = append(batch, tsdb.Point[string]{Entity: m.entities[rnd.IntN(4)], Time: at, ID: someID(), Value: fmt.Sprint(value, len(batch))})
			}
			put := m.repo.PutMany
			if rnd.IntN(2) == 0 {
				if put = m.repo.Via(w).EnqueueMany; linger == time.Hour {
					put = flushed(m.repo.Via(w), w)
				}
			}
			outcomes, _ := put(ctx, batch)
			for i, q := range batch {
				if ok := m.put(q.Entity, pointKeyOf(q), oraclePoint{q.Value, age}, c.Now()); ok != (outcomes[i].State == tsdb.Stored) {
					t.Fatalf("PutMany: %+v", outcomes[i])
				}
			}
			m.settle(batch)
		case 5:
			var stored bool
			if stored, err = repo.PutIfAbsent(ctx, e, at, value); stored {
				m.put(e, pointKey{at.UnixMilli(), id}, p, c.Now())
			}
		case 6, 7:
			if shown := m.shown(e, c.Now()); len(shown) > 0 {
				if at = shown[0].Time; opts.Identity {
					id, repo = shown[0].ID, m.repo.WithID(shown[0].ID)
				}
			}
			err = repo.Delete(ctx, e, at)
			delete(m.points[e], pointKey{at.UnixMilli(), id})
		case 8:
			_, err = m.repo.DeleteRange(ctx, e, tsdb.Since(at))
			maps.DeleteFunc(m.points[e], func(in pointKey, _ oraclePoint) bool { return in.ms >= at.UnixMilli() })
		case 9:
			if rnd.IntN(3) == 0 {
				_, err = m.repo.DeletePrefix(ctx, tsdb.NewPrefix("a"))
				delete(m.points, m.entities[0])
				delete(m.points, m.entities[1])
			}
		case 10:
			c.Add(time.Duration(rnd.Int64N(int64(4 * time.Minute))))
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range tenants {
			m.compare(t, step, c.Now(), when())
		}
	}
}

// flushed puts points and sends them in one batch.
func flushed(in *tsdb.Sink[string], w *tsdb.Writer) func(context.Context, []tsdb.Point[string]) ([]tsdb.Outcome, error) {
	return func(ctx context.Context, points []tsdb.Point[string]) ([]tsdb.Outcome, error) {
		outcomes := make([]tsdb.Outcome, len(points))
		for i, p := range points {
			_ = in.EnqueueFunc(ctx, p.Entity, p.Time, p.Value, func(o tsdb.Outcome) { outcomes[i] = o }) // called for errors too
		}
		return outcomes, w.Flush(ctx)
	}
}

// written records a write that returned err, and checks err.
func (m *modelTenant) written(e tsdb.Entity, at time.Time, id string, p oraclePoint, now time.Time, err error) error {
	if m.put(e, pointKey{at.UnixMilli(), id}, p, now) == (err == nil) && (err == nil || errors.Is(err, tsdb.ErrExists)) {
		return nil
	}
	return fmt.Errorf("a write at %v ended with %v", at, err)
}

func (m *modelTenant) compare(t *testing.T, step int, now, at time.Time) {
	t.Helper()
	if step%5 == 0 {
		manyToOracle(t, m.repo, m.oracle, m.entities, now)
	}
	answers, err := latestMany(t.Context(), m.repo, m.entities, tsdb.MaxStale(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range m.entities {
		want := m.shown(e, now)
		for range 2 { // the second read is from memory
			p, err := m.repo.Latest(t.Context(), e, tsdb.MaxStale(time.Hour))
			if a := answers[i]; p != a.Point && a.Err == nil || !errors.Is(err, a.Err) {
				t.Fatalf("step %d: Latest of %v is %v, %v; LatestMany returns %+v", step, e, p, err, a)
			}
			if len(want) == 0 && !errors.Is(err, tsdb.ErrNotFound) || len(want) > 0 && (err != nil || p != want[0]) {
				t.Fatalf("step %d: Latest of %s's %v from memory is %v, %v, want %v", step, m.repo.Tenant(), e, p, err, want)
			}
		}
		for _, q := range []query{{Entity: e}, {Entity: e, Order: tsdb.OldestFirst}, {Entity: e, In: tsdb.Between(at.Add(-8*time.Minute), at)}} {
			var in, got []tsdb.Point[string]
			for _, p := range want {
				if q.In.Contains(p.Time) {
					in = append(in, p)
				}
			}
			if q.Order == tsdb.OldestFirst {
				slices.Reverse(in)
			}
			for cursor, more := "", true; more; more = cursor != "" {
				page, err := m.repo.Page(t.Context(), q.Entity, q.In, 2, cursor, q.Order)
				if err != nil {
					t.Fatal(err)
				}
				got, cursor = append(got, page.Points...), page.Next
			}
			if !slices.Equal(got, in) {
				t.Fatalf("step %d: the pages of %v hold %v, want %v", step, q, got, in)
			}
		}
	}
}
