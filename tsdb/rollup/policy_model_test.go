package rollup_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/gcrule"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var beliefs = flag.Int("rollup.beliefs", 1, "how many random lives rollups whose buckets expire are given, under each policy")

// kept are policies, and for how long they keep a single cell; 0 means for ever.
var kept = []struct {
	policy gc.Policy
	age    time.Duration
}{
	{gc.MaxAge(3 * time.Hour), 3 * time.Hour},
	{gc.Any(gc.MaxAge(50*time.Hour), gc.MaxAge(4*time.Hour)), 4 * time.Hour},
	{gc.All(gc.MaxAge(3*time.Hour), gc.MaxAge(30*time.Hour)), 30 * time.Hour},
	{gc.Any(gc.All(gc.MaxAge(7*24*time.Hour), gc.Never()), gc.MaxAge(5*24*time.Hour)), 5 * 24 * time.Hour},
	{gc.All(gc.MaxAge(3*time.Hour), gc.Never()), 0},
}

// TestBucketsFollowThePolicy uses a derived rollup and one with added events. They and their points have nested
// policies, in a table whose policies were changed to longer ones. The clock jumps to times at which buckets expire.
// Before, during and after garbage collection, reads return exactly the buckets that the rollup's policy keeps.
func TestBucketsFollowThePolicy(t *testing.T) {
	for i, of := range kept {
		for seed := range uint64(*beliefs) {
			t.Run(fmt.Sprint(of.policy, seed), func(t *testing.T) {
				testkit.OneOf(t, i == 3)
				addBubble(t, func(t *testing.T) {
					bucketsLive(t, rand.New(rand.NewPCG(seed, uint64(i))), of.policy, of.age)
				})
			})
		}
	}
}

func bucketsLive(t *testing.T, rnd *rand.Rand, policy gc.Policy, age time.Duration) {
	ctx := t.Context()
	class := gc.Class{Name: "agg", Policy: policy}
	derived := rollup.MustDefine("h", window.Every(time.Hour), measures(), rollup.Options{Retention: class, Span: 6 * time.Hour})
	added := rollup.MustDefine("adds", window.Every(time.Hour), measures(), rollup.Options{Retention: class, Mode: rollup.Once, Span: 6 * time.Hour})
	s := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "raw", Policy: kept[1+rnd.IntN(len(kept)-1)].policy}, Rollups: []tsdb.Rollup{derived, added},
	})
	c := testkit.NewClock(start)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	_, admin := tsdbtest.Clients(t, conn)
	repo := s.For(store, acme)
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: only(acme)}, s)
	if err != nil {
		t.Fatal(err)
	}
	adder := rollup.NewAdder(added, repo, nil)
	all := map[time.Time]reading{}
	entities := []tsdb.Entity{roof}
	for step := range 40 {
		for range rnd.IntN(5) { // within the last hour, so that no bucket loses points before it is computed
			at := c.Now().Add(-time.Duration(rnd.Int64N(int64(time.Hour)))).Truncate(time.Second)
			v := reading{TempC: float64(rnd.IntN(100))}
			if _, there := all[at]; there {
				continue
			}
			if err := repo.Put(ctx, roof, at, v); err != nil {
				t.Fatal(err)
			}
			if err := adder.Add(ctx, roof, at, v); err != nil {
				t.Fatal(err)
			}
			all[at] = v
		}
		if step == 20 { // the policies are changed outside the program
			for _, f := range []string{"raw", "agg.s", "agg.n", "agg.x", "agg.c"} {
				longer := gc.Never()
				if rnd.IntN(2) == 0 {
					longer = gc.MaxAge(400 * 24 * time.Hour)
				}
				if err := drift(t, admin, f, longer); err != nil {
					t.Fatal(err)
				}
			}
		}
		if rnd.IntN(2) == 0 {
			settleMarks(t, c, worker)
			jump := time.Duration(rnd.Int64N(int64(2 * time.Hour)))
			if age > 0 && len(all) > 0 && rnd.IntN(2) == 0 {
				starts := make([]time.Time, 0, len(all))
				for at := range all {
					starts = append(starts, at.Truncate(time.Hour))
				}
				slices.SortFunc(starts, time.Time.Compare)
				for _, s := range starts {
					if edge := s.Add(age).Add([]time.Duration{-time.Millisecond, -1, 0, 1, time.Millisecond}[rnd.IntN(5)]); edge.After(c.Now()) {
						jump = edge.Sub(c.Now())
						break
					}
				}
			}
			c.Add(jump)
		}
		collected := make(chan error, 1)
		switch rnd.IntN(3) {
		case 0:
			go func() { collected <- conn.Collect(ctx) }()
		case 1:
			collected <- conn.Collect(ctx)
		default:
			collected <- nil
		}
		visible := map[time.Time]reading{}
		for at, v := range all {
			if age == 0 || c.Now().Sub(at.Truncate(time.Hour)) <= age {
				visible[at] = v
			}
		}
		for _, r := range []*rollup.Rollup[reading]{derived, added} {
			askBuckets(t, fmt.Sprintf("step %d, %s", step, r.Name()), rollup.For(r, repo), entities, expected(r, visible, c.Now()))
		}
		if err := <-collected; err != nil {
			t.Fatal(err)
		}
	}
}

// settleMarks makes the worker compute all marked buckets after they are closed.
func settleMarks(t *testing.T, c *clock, worker *rollup.Worker) {
	t.Helper()
	c.Add(65 * time.Minute)
	for range 10 {
		c.Add(time.Minute)
		p, err := worker.Pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p.Marks == 0 && p.Waiting == 0 {
			return
		}
	}
	t.Fatal("the worker does not clear all marks")
}

// drift changes the policy of a family, of aggregates or not, outside the program.
func drift(t *testing.T, admin *bigtable.AdminClient, family string, p gc.Policy) error {
	t.Helper()
	return admin.UpdateFamily(t.Context(), tsdbtest.Table, family, bigtable.Family{GCPolicy: gcrule.To(p)})
}

// askBuckets checks each read of a rollup.
func askBuckets(t *testing.T, what string, reader *rollup.Reader[reading], entities []tsdb.Entity, want []window.Bucket) {
	t.Helper()
	ctx := t.Context()
	for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
		var got []window.Bucket
		for b, err := range reader.Buckets(ctx, roof, tsdb.AllTime(), order) {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			got = append(got, b)
		}
		same(t, what+": Buckets", got, want, order)
	}
	got, err := reader.Latest(ctx, roof, 2)
	if err != nil {
		t.Fatalf("%s: Latest: %v", what, err)
	}
	same(t, what+": Latest", got, want[max(0, len(want)-2):], tsdb.NewestFirst)
	answers, err := reader.Many(ctx, entities, tsdb.AllTime(), tsdb.OldestFirst)
	if err != nil {
		t.Fatalf("%s: Many: %v", what, err)
	}
	same(t, what+": Many", answers[0].Buckets, want, tsdb.OldestFirst)
	total, err := reader.Total(ctx, roof, tsdb.AllTime())
	if err != nil {
		t.Fatalf("%s: Total: %v", what, err)
	}
	points := int64(0)
	for _, b := range want {
		points += b.Points
	}
	if total.Points != points {
		t.Fatalf("%s: Total holds %d points, want %d", what, total.Points, points)
	}
}
