package rollup_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestDerivedIsARecomputation writes points in any order, with late ones, duplicates, overwrites and deletions, in
// every way, while two workers make passes at any time on a service that sometimes fails. Each read equals a
// computation from the points; in the end, so do the stored buckets.
func TestDerivedIsARecomputation(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain":      {},
		"salted":     {Salts: 4},
		"first wins": {FirstWins: true},
		"heads":      {Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OneOf(t, name == "heads")
			for seed := range uint64(*seeds) {
				addBubble(t, func(t *testing.T) { derived(t, rand.New(rand.NewPCG(seed, 1)), opts) })
			}
		})
	}
}

var seeds = flag.Int("rollup.seeds", 1, "how many random lives a derived rollup is given, of each kind")

// model is what one tenant has written.
type model struct {
	repo   *tsdb.Repository[reading]
	points map[tsdb.Entity]map[time.Time]reading
}

func derived(t *testing.T, rnd *rand.Rand, opts tsdb.SchemaOptions) {
	ctx := t.Context()
	opts.Retention = gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	def := newThree(opts)
	c := testkit.NewClock(start)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, def.schema)
	w, err := store.NewWriter(tsdb.WriterOptions{Linger: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(ctx)
	var models []*model
	for _, id := range []tenant.ID{acme, acme2} {
		models = append(models, &model{def.schema.For(store, id), map[tsdb.Entity]map[time.Time]reading{}})
	}
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: only(acme, acme2)}, def.schema)
	if err != nil {
		t.Fatal(err)
	}
	entities := []tsdb.Entity{tsdb.NewEntity("a", "1"), tsdb.NewEntity("a", "12"), tsdb.NewEntity("a#", "1")}
	when := func() time.Time {
		return c.Now().Add(-time.Duration(rnd.Int64N(int64(30 * time.Hour)))).Truncate(10 * time.Second)
	}
	value := func() reading {
		r := reading{TempC: math.Round(rnd.NormFloat64()*1000) / 100}
		if rnd.IntN(2) == 0 {
			wet := rnd.Int64N(1000)
			r.Wet = &wet
		}
		if rnd.IntN(20) == 0 {
			r.TempC = 5000 // above the measure's Max
		}
		return r
	}
	for step := range fewer(120) {
		m := models[rnd.IntN(2)]
		e := entities[rnd.IntN(len(entities))]
		at := when()
		switch rnd.IntN(9) {
		case 0:
			m.wrote(t, opts, e, at, value(), func(v reading) error { return m.repo.Put(ctx, e, at, v) })
		case 1:
			m.wrote(t, opts, e, at, value(), func(v reading) error {
				var reported tsdb.Outcome
				if err := m.repo.Via(w).EnqueueFunc(ctx, e, at, v, func(o tsdb.Outcome) { reported = o }); err != nil {
					return err
				}
				if err := w.Flush(ctx); err != nil {
					return err
				}
				return reported.Err
			})
		case 2, 3, 4:
			var batch []tsdb.Point[reading]
			for range rnd.IntN(40) {
				batch = append(batch, tsdb.Point[reading]{Entity: entities[rnd.IntN(3)], Time: when(), Value: value()})
			}
			put := m.repo.PutMany
			if rnd.IntN(2) == 0 {
				put = m.repo.Via(w).EnqueueMany
			}
			outcomes, _ := put(ctx, batch)
			for i, o := range outcomes {
				p := batch[i]
				m.wrote(t, opts, p.Entity, p.Time, p.Value, func(reading) error { return o.Err })
			}
		case 5:
			for known := range m.points[e] {
				at = known
				break
			}
			if err := m.repo.Delete(ctx, e, at); err != nil {
				t.Fatal(err)
			}
			delete(m.points[e], at)
		case 6:
			in := tsdb.Between(at, at.Add(time.Duration(rnd.Int64N(int64(3*time.Hour)))))
			if _, err := m.repo.DeleteRange(ctx, e, in); err != nil {
				t.Fatal(err)
			}
			for known := range m.points[e] {
				if in.Contains(known) {
					delete(m.points[e], known)
				}
			}
		case 7:
			if rnd.IntN(4) == 0 {
				if _, err := m.repo.DeletePrefix(ctx, tsdb.NewPrefix("a")); err != nil {
					t.Fatal(err)
				}
				delete(m.points, entities[0])
				delete(m.points, entities[1])
			}
		case 8:
			c.Add(time.Duration(rnd.Int64N(int64(3 * time.Hour))))
			if rnd.IntN(2) == 0 {
				f := tsdbtest.Fail(codes.Unavailable)
				if rnd.IntN(2) == 0 {
					f = tsdbtest.LoseResponse(codes.Unavailable)
				}
				conn.Inject(f.Skip(rnd.IntN(20)).Times(1 + rnd.IntN(2)))
			}
			_, _ = worker.Pass(ctx)
			conn.Clear()
		}
		if step%6 == 0 {
			for _, m := range models {
				m.compare(t, step, def, entities, c.Now())
			}
		}
	}
	c.Add(3 * 24 * time.Hour)
	for pass := 0; ; pass++ {
		p, err := worker.Pass(ctx)
		if err != nil || pass > 5 {
			t.Fatalf("pass %d: %+v, %v", pass, p, err)
		}
		if p.Marks == 0 && p.Waiting == 0 {
			break
		}
		c.Add(time.Hour) // for the marks that the finer rollups have made
	}
	conn.Reset()
	for _, m := range models {
		m.compare(t, -1, def, entities, c.Now())
	}
}

// wrote records a write that returned err, and checks err.
func (m *model) wrote(t *testing.T, opts tsdb.SchemaOptions, e tsdb.Entity, at time.Time, v reading, put func(reading) error) {
	t.Helper()
	if err := put(v); err != nil {
		if _, there := m.points[e][at]; there && opts.FirstWins {
			return
		}
		t.Fatal(err)
	}
	if m.points[e] == nil {
		m.points[e] = map[time.Time]reading{}
	}
	m.points[e][at] = v
}

func (m *model) compare(t *testing.T, step int, def three, entities []tsdb.Entity, now time.Time) {
	t.Helper()
	for _, r := range def.all() {
		reader := rollup.For(r, m.repo)
		for _, e := range entities {
			want := expected(r, m.points[e], now)
			for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
				var got []window.Bucket
				for b, err := range reader.Buckets(t.Context(), e, tsdb.AllTime(), order) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, b)
				}
				same(t, fmt.Sprintf("step %d: %s of %v of %s, order %v", step, r.Name(), e, m.repo.Tenant(), order), got, want, order)
			}
		}
	}
}
