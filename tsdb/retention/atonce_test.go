package retention_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestEachReplicaPlansAndApplies: a replica that plans after another has applied can allow the same names, and has
// nothing to do.
func TestEachReplicaPlansAndApplies(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90), heads(2)), define(t, "events", days("d7", 7)))
	want := define(t, "readings", days("d90", 30), heads(2))
	for i := range 3 {
		rep := apply(t, store, plan(t, store, want), "d90", "d90.h2")
		if first := i == 0; first == (len(rep.Applied) == 0) {
			t.Errorf("replica %d: report %v", i, rep)
		}
	}
	longer := plan(t, store, define(t, "readings", days("d90", 60), heads(2)))
	for _, name := range []string{"d90", "d90.h", "D90", "d9", "d7", "_sys "} {
		if _, err := longer.Apply(t.Context(), store, retention.ApplyOptions{Allow: []string{name}}); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("Allow with %q, which deletes nothing: %v, want ErrInvalid", name, err)
		}
	}
}

// TestAnotherPlanIsFaster: if another plan's call comes after this one's, Apply notices it at the end, and does not
// report that everything is as planned.
func TestAnotherPlanIsFaster(t *testing.T) {
	c := &console{}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{c.option()}}, define(t, "readings", days("d90", 90)))
	a := admin(t, conn)
	p := plan(t, store, define(t, "readings", days("d90", 30)))
	c.after = func(n int) error {
		if n == 1 {
			set(t, a, "d90", bigtable.MaxAgePolicy(180*day))
		}
		return nil
	}
	rep, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: []string{"d90"}})
	if !errors.Is(err, retention.ErrStale) || len(rep.Applied) != 2 {
		t.Errorf("report %v, error %v", rep, err)
	}
}

// TestTwoPlansAtOnce: one plan shortens a class and the other lengthens it. At most one Apply succeeds, and then the
// catalogue has its policy.
func TestTwoPlansAtOnce(t *testing.T) {
	for range 10 {
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, define(t, "readings", days("d90", 90), heads(2)))
		errs, ages := [2]error{}, [2]int{30, 180}
		plans := [2]*retention.Plan{}
		for i, age := range ages {
			plans[i] = plan(t, store, define(t, "readings", days("d90", age), heads(2)))
		}
		var wg sync.WaitGroup
		for i, p := range plans {
			wg.Go(func() {
				_, errs[i] = p.Apply(context.Background(), store, retention.ApplyOptions{Allow: p.Destructive()})
			})
		}
		wg.Wait()
		for i, err := range errs {
			if err != nil && !errors.Is(err, retention.ErrStale) {
				t.Error(err)
			}
			if err != nil {
				continue
			}
			if errs[1-i] == nil {
				t.Error("both plans succeeded, want at most one")
			}
			p, err := retention.NewPlanFor(t.Context(), store, nil)
			if err != nil {
				t.Fatal(err)
			}
			again, err := retention.NewPlanFor(t.Context(), store, map[string]gc.Policy{"d90": days("d90", ages[i]).Policy})
			if err != nil || again.String() != p.String() {
				t.Errorf("the catalogue is not as planned: %v\n%v", err, again)
			}
		}
	}
}

// TestAContextEndsInTheMiddle: Apply reports what it has done, and the same plan can be continued.
func TestAContextEndsInTheMiddle(t *testing.T) {
	c := &console{}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{c.option()}}, define(t, "readings", days("d90", 90), heads(2)))
	p := plan(t, store, define(t, "readings", days("d90", 30), heads(2)))
	ctx, cancel := context.WithCancel(t.Context())
	c.after = func(int) error { cancel(); return nil }
	rep, err := p.Apply(ctx, store, retention.ApplyOptions{Allow: []string{"d90"}})
	if !errors.Is(err, context.Canceled) || len(rep.Applied) != 2 {
		t.Errorf("report %v, error %v; want two families and the context's error", rep, err)
	}
	if rep := apply(t, store, p, "d90"); len(rep.Applied) != 1 || rep.Applied[0].Kind != "record" {
		t.Errorf("report %v, want the entry", rep)
	}
	if rep := apply(t, store, p, "d90"); len(rep.Applied) != 0 {
		t.Errorf("report %v, want nothing", rep)
	}
}
