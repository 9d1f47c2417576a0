package rollup_test

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// lengthened is a store in which the retention of the points, or of the finer rollup, changes.
type lengthened struct {
	*one
	day  *rollup.Rollup[reading]
	fine bool // the class of the finer rollup changes, and points are kept for ever
}

// declare makes the program declare an age.
func (l *lengthened) declare(age time.Duration) {
	changing := gc.Class{Name: "aged", Policy: gc.MaxAge(age)}
	points, hours := changing, gc.Class{}
	if l.fine {
		points, hours = gc.Class{Name: "ever", Policy: gc.Never()}, changing
	}
	l.hour = rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{Retention: hours})
	l.day = rollup.MustDefine("day", window.Every(24*time.Hour), measures(), rollup.Options{From: "hour", Retention: gc.Class{Name: "days", Policy: gc.Never()}})
	l.schema = tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Retention: points, Rollups: []tsdb.Rollup{l.hour, l.day}})
}

// open opens the store with the declared schema.
func (l *lengthened) open(t *testing.T) {
	t.Helper()
	l.repo = l.schema.For(l.store, acme)
	var err error
	if l.worker, err = rollup.NewWorker(l.store, rollup.WorkerOptions{Tenants: only(acme)}, l.schema); err != nil {
		t.Fatal(err)
	}
}

// apply changes the table to the declared policies.
func (l *lengthened) apply(t *testing.T) {
	t.Helper()
	plan, err := retention.NewPlan(t.Context(), l.store, l.schema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Apply(t.Context(), l.store, retention.ApplyOptions{Allow: plan.Destructive()}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Minute) // until the store has read the catalogue again
}

func (l *lengthened) settle(t *testing.T) {
	t.Helper()
	for range 4 {
		l.Add(2 * time.Minute)
		l.pass(t)
	}
}

// TestLengthenedPolicies: a longer policy does not bring back collected data. So a bucket that lacks data stays as it
// was stored, whatever late points or rebuilds follow. Complete buckets are computed as usual.
func TestLengthenedPolicies(t *testing.T) {
	const day = 24 * time.Hour
	for name, change := range map[string]func(*testing.T, *lengthened){
		"lengthened": func(t *testing.T, l *lengthened) {
			l.declare(10 * day)
			l.apply(t)
		},
		"shortened and lengthened": func(t *testing.T, l *lengthened) {
			l.declare(36 * time.Hour)
			l.apply(t)
			l.declare(10 * day)
			l.apply(t)
		},
		"lengthened twice": func(t *testing.T, l *lengthened) {
			l.declare(3 * day)
			l.apply(t)
			l.declare(10 * day)
			l.apply(t)
		},
		"lengthened by a program of its own": func(t *testing.T, l *lengthened) {
			l.declare(10 * day) // the program uses it before it is applied
		},
	} {
		for _, fine := range []bool{false, true} {
			what := name + ", points"
			if fine {
				what = name + ", the finer rollup"
			}
			t.Run(what, func(t *testing.T) {
				testkit.OneOf(t, name == "shortened and lengthened" && fine)
				clockBubble(t, func(t *testing.T) {
					l, midnight := fourDaysLater(t, 2*day, fine)
					if err := l.conn.Collect(t.Context()); err != nil {
						t.Fatal(err)
					}
					change(t, l)
					l.open(t)
					l.put(t, midnight.Add(3*time.Hour), 1)  // late, into a bucket that lacks data
					l.put(t, midnight.Add(82*time.Hour), 1) // late, into a complete bucket
					l.wantDay(t, "read", midnight, 10)
					l.settle(t)
					l.settle(t)
					l.wantDay(t, "read after the worker", midnight, 10)
					for _, r := range []*rollup.Rollup[reading]{l.hour, l.day} {
						if _, err := rollup.For(r, l.repo).Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); err != nil {
							t.Fatal(err)
						}
					}
					l.wantDay(t, "read after a rebuild", midnight, 10)
					l.wantDay(t, "read of what is not lost", midnight.Add(3*day), 1)
				})
			})
		}
	}
}

// fourDaysLater returns a store four days after ten points were written at midnight, which a worker has computed.
// Points are kept for age.
func fourDaysLater(t *testing.T, age time.Duration, fine bool) (l *lengthened, midnight time.Time) {
	t.Helper()
	l = &lengthened{one: &one{clock: testkit.NewClock(start)}, fine: fine}
	l.declare(age)
	l.store, l.conn = tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: l.Now}}, l.schema)
	l.open(t)
	midnight = l.day.Grid().Next(start)
	for i := range 10 {
		l.put(t, midnight.Add(time.Duration(i)*time.Minute), 1)
	}
	l.Set(midnight.Add(26 * time.Hour))
	l.settle(t)
	l.Set(midnight.Add(4 * 24 * time.Hour))
	return l, midnight
}

// wantDay checks that a day, computed from hours, and these hours hold n points.
func (l *lengthened) wantDay(t *testing.T, what string, midnight time.Time, n int64) {
	t.Helper()
	in := tsdb.Between(midnight, midnight.Add(24*time.Hour))
	if b := total(t, l.day, l.repo, in); b.Points != n {
		t.Errorf("%s: the day holds %d points, want %d", what, b.Points, n)
	}
}

// TestShortenedElsewhere: the families' policy is shortened outside the program for some days, and the catalogue does
// not know. The plan that lengthens it again, to the catalogue's policy or a longer one, records what may be lost, and
// that is not computed any more.
func TestShortenedElsewhere(t *testing.T) {
	const day = 24 * time.Hour
	for name, age := range map[string]time.Duration{"as before": 10 * day, "longer than before": 20 * day} {
		for _, fine := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the finer rollup %v", name, fine), func(t *testing.T) {
				clockBubble(t, func(t *testing.T) {
					l, midnight := fourDaysLater(t, 10*day, fine)
					families := []string{"aged"}
					if fine {
						families = []string{"aged.s", "aged.n", "aged.x"}
					}
					_, console := tsdbtest.Clients(t, l.conn)
					for _, f := range families {
						if err := console.SetGCPolicy(t.Context(), tsdbtest.Table, f, bigtable.MaxAgePolicy(2*day)); err != nil {
							t.Fatal(err)
						}
					}
					if err := l.conn.Collect(t.Context()); err != nil {
						t.Fatal(err)
					}
					l.declare(age)
					l.apply(t)
					l.open(t)
					l.put(t, midnight.Add(3*time.Hour), 1)  // late, into a bucket that lacks data
					l.put(t, midnight.Add(82*time.Hour), 1) // late, into a complete bucket
					l.settle(t)
					l.settle(t)
					l.wantDay(t, "read after the worker", midnight, 10)
					for _, r := range []*rollup.Rollup[reading]{l.hour, l.day} {
						if _, err := rollup.For(r, l.repo).Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); err != nil {
							t.Fatal(err)
						}
					}
					l.wantDay(t, "read after a rebuild", midnight, 10)
					l.wantDay(t, "read of what is not lost", midnight.Add(3*day), 1)
				})
			})
		}
	}
}
