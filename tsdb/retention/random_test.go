package retention_test

import (
	"flag"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/gcrule"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var rounds = flag.Int("retention.rounds", 40, "how many random tables to plan for")

// program is a random program: the policies of its classes, and the classes of its datasets.
type program struct {
	*rand.Rand
	policies map[string]gc.Policy
}

func (w *program) class() gc.Class {
	name := "c" + strconv.Itoa(w.IntN(3))
	return gc.Class{Name: name, Policy: w.policies[name]}
}

// redraw gives some classes new policies.
func (w *program) redraw() {
	for i := range 3 {
		if w.policies["c"+strconv.Itoa(i)], _ = w.policy(); w.IntN(3) == 0 {
			w.policies["c"+strconv.Itoa(i)] = gc.Never()
		}
	}
}

// policy returns a policy of points, and any policy.
func (w *program) policy() (gc.Policy, gc.Policy) {
	p := gc.MaxAge(time.Duration(1+w.IntN(5)) * day)
	return p, []gc.Policy{p, gc.Never(), gc.Any(p, gc.MaxVersions(1+w.IntN(4))), gc.All(p, gc.MaxVersions(1+w.IntN(4)))}[w.IntN(4)]
}

// datasets returns the program's datasets. Their shapes depend only on the seed.
func (w *program) datasets(t testing.TB, seed uint64) []tsdb.Dataset {
	shapes := rand.New(rand.NewPCG(seed, 1))
	var out []tsdb.Dataset
	for i := range 1 + shapes.IntN(4) {
		pick := func() gc.Class {
			name := "c" + strconv.Itoa(shapes.IntN(3))
			return gc.Class{Name: name, Policy: w.policies[name]}
		}
		var change []func(*tsdb.SchemaOptions)
		if shapes.IntN(2) == 0 {
			change = append(change, heads(1+shapes.IntN(3)))
		}
		if shapes.IntN(2) == 0 {
			change = append(change, hourly(pick()))
		}
		out = append(out, define(t, "d"+strconv.Itoa(i), pick(), change...))
	}
	return out
}

// TestRandomTables: for random schemas and changes elsewhere, an applied plan, also after an error in the middle,
// leaves a table that Ensure accepts and for which the next plan is empty. Other families do not change, and no family
// keeps less than before unless the plan says so.
func TestRandomTables(t *testing.T) {
	for n := range *rounds {
		if testkit.Raced && n%10 != 0 {
			continue // the plain run has all seeds
		}
		seed := uint64(n)
		w := &program{Rand: rand.New(rand.NewPCG(seed, 2)), policies: map[string]gc.Policy{}}
		w.redraw()
		stored := w.datasets(t, seed)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, stored...)
		a := admin(t, conn)
		create(t, a, "own", bigtable.Family{GCPolicy: bigtable.MaxVersionsPolicy(3)})
		for name := range policies(t, a) {
			if _, drift := w.policy(); w.IntN(4) == 0 {
				set(t, a, name, gcrule.To(drift))
			}
		}
		if w.IntN(4) > 0 {
			w.redraw()
		}
		want := append(w.datasets(t, seed), define(t, "new", w.class(), heads(2)))
		before := full(t, a)
		p := plan(t, store, want...)
		if !maps.EqualFunc(full(t, a), before, gc.Policy.Equal) {
			t.Fatalf("seed %d: making a plan changed the table", seed)
		}
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.CheckAndMutateRow).Skip(w.IntN(6)).Times(1))
		_, err := p.Apply(t.Context(), store, retention.ApplyOptions{Allow: p.Destructive()})
		conn.Clear()
		if err != nil {
			apply(t, store, p, p.Destructive()...)
		}
		if err := store.Ensure(t.Context(), want...); err != nil {
			t.Errorf("seed %d: Ensure after\n%v: %v", seed, p, err)
		}
		if left := plan(t, store, want...); !left.Empty() || left.Drifted() {
			t.Errorf("seed %d: the next plan is not empty:\n%v", seed, left)
		}
		destructive := map[string]bool{}
		for _, i := range p.Items() {
			destructive[i.Family] = destructive[i.Family] || i.Destructive
		}
		after := full(t, a)
		for name, was := range before {
			if is, ok := after[name]; !ok || inside.Of(is).KeepsAllOf(was) == destructive[name] {
				t.Errorf("seed %d: %s was %v, is %v (%v), but the plan is\n%v", seed, name, was, is, ok, p)
			}
		}
		if !after["own"].Equal(before["own"]) {
			t.Errorf("seed %d: the family of another program was %v and is %v", seed, before["own"], after["own"])
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// full returns the table's policies.
func full(t testing.TB, a *bigtable.AdminClient) map[string]gc.Policy {
	t.Helper()
	info, err := a.TableInfo(t.Context(), tsdbtest.Table)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]gc.Policy{}
	for _, f := range info.FamilyInfos {
		if out[f.Name], err = gcrule.From(f.FullGCPolicy); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
