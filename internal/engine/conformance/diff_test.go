package conformance

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

var (
	diffSeed  = flag.Uint64("diff.seed", 1, "seed of the first differential run")
	diffRuns  = flag.Int("diff.runs", 2, "differential runs, each with the next seed")
	diffSteps = flag.Int("diff.steps", 1500, "steps of a differential run")
)

// step is one action on both stores. Its result must be the same.
type step struct {
	what string
	do   func(e *env, tbl bigtable.TableAPI) string
}

// A random sequence of requests has the same results on the engine and on the official fake, for everything that the
// fake does correctly. The test reopens the engine on the way. The memtable is small, so the engine flushes all the
// time.
func TestEngineIsTheFake(t *testing.T) {
	testkit.Plain(t)
	for i := range *diffRuns {
		seed := *diffSeed + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { diff(t, newGenerator(seed), seed, *diffSteps) })
	}
}

// TestViewIsTheFake is TestEngineIsTheFake through an authorized view of a table with other rows and columns. The fake
// holds only what the view covers.
func TestViewIsTheFake(t *testing.T) {
	testkit.Plain(t)
	for i := range (*diffRuns + 1) / 2 {
		seed := *diffSeed + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			g := newGenerator(seed)
			g.view, g.rowKeys = true, viewRows
			diff(t, g, seed, *diffSteps)
		})
	}
}

func diff(t *testing.T, g *generator, seed uint64, steps int) {
	fs := vfs.NewMem()
	dial := func(t testing.TB, c *clock) server {
		eng, err := engine.Open(engine.Options{Dir: "data", FS: fs, Clock: c.now, Steady: c.steady, GCInterval: -1, MemTableBytes: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		s := serverOf(t, eng)
		disconnect := s.stop
		s.stop = sync.OnceFunc(func() {
			disconnect()
			closeEngine(t, eng)
		})
		return s
	}
	mine, theirs := open(t, backend{name: "engine", dial: dial}), open(t, fake)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	mine.ctx, theirs.ctx = ctx, ctx

	for _, e := range []*env{mine, theirs} {
		g.create(e)
	}
	if g.view {
		g.createView(mine)
	}
	for n := range steps {
		if n%400 == 399 {
			mine = reopen(mine, dial)
		}
		if n%97 == 96 {
			if err := mine.collect(); err != nil {
				t.Fatalf("seed %d, step %d: collecting garbage: %v", seed, n, err)
			}
		}
		s := g.step()
		got, want := s.do(mine, g.open(mine)), s.do(theirs, theirs.client.Open("t"))
		if got != want {
			t.Fatalf("step %d differs (again with -diff.seed=%d -diff.runs=1 -diff.steps=%d):\n%s\nengine %s\n  fake %s",
				n, seed, n+1, s.what, from(got, want), from(want, got))
		}
	}
}

// from returns a's text from shortly before its first difference from b.
func from(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n < 100 {
		return a[:min(len(a), n+200)]
	}
	return "…" + a[n-100:min(len(a), n+200)]
}

// reopen closes the engine of e and opens it again.
func reopen(e *env, dial func(testing.TB, *clock) server) *env {
	e.client.Close()
	e.admin.Close()
	e.stop()
	s := dial(e.TB, e.clock)
	next := open(e.TB, backend{name: "engine", dial: func(testing.TB, *clock) server { return s }})
	next.ctx = e.ctx
	return next
}

// outcome returns the part of a request's result that must agree.
func outcome(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

// generator returns random steps.
type generator struct {
	r       *rand.Rand
	micros  bool
	rowKeys []string
	// view says that the engine gets requests through a view, and that mutations stay within it.
	view bool
}

func newGenerator(seed uint64) *generator {
	r := rand.New(rand.NewPCG(seed, 7))
	return &generator{r: r, micros: r.IntN(3) == 0, rowKeys: diffRows}
}

func (g *generator) create(e *env) {
	e.Helper()
	if g.micros {
		e.createMicros("t", "a", "b", "r")
	} else {
		e.create("t", "a", "b", "r")
	}
	sum := bigtable.Family{ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}}
	if err := e.admin.CreateColumnFamilyWithConfig(e.ctx, "t", "s", sum); err != nil {
		e.Fatal(err)
	}
}

func pick[T any](g *generator, from []T) T { return from[g.r.IntN(len(from))] }

var (
	diffRows   = []string{"a", "a\x00", "a\x00\x00", "a\x00\xff", "a\x01", "a#1", "a#2", "a#2#x", "ab", "b", "b\xff", "b\xff\xff", "c", "\x00", "\xff", "\xff\xff", "é"}
	diffQuals  = []string{"", "p", "p\x00", "pq", "q", "\xff", "\x00"}
	diffValues = []string{"", "x", "xx", "y", "z\n", "\xff\x00", "some longer value that is the same each time"}
)

func (g *generator) row() string { return pick(g, g.rowKeys) }

func (g *generator) time() bigtable.Timestamp {
	n := g.r.Int64N(8)
	if g.micros {
		return bigtable.Timestamp(n)
	}
	return ms(n)
}

// mutation returns a random row mutation and its description.
func (g *generator) mutation() (*bigtable.Mutation, string) {
	m, what := bigtable.NewMutation(), ""
	for range 1 + g.r.IntN(5) {
		fam, q := pick(g, []string{"a", "b"}), pick(g, diffQuals)
		kinds := 20
		if g.view { // The view covers only some columns of family b, so it allows no deletion of a row.
			q, kinds = pick(g, viewQuals), 18
		}
		switch n := g.r.IntN(kinds); {
		case n < 11:
			ts, v := g.time(), pick(g, diffValues)
			m.Set(fam, q, ts, []byte(v))
			what += fmt.Sprintf(" set %s:%q@%d=%q", fam, q, ts, v)
		case n < 14:
			ts, v := g.time(), g.r.Int64N(9)-4
			m.AddIntToCell("s", q, ts, v)
			what += fmt.Sprintf(" add s:%q@%d+%d", q, ts, v)
		case n < 16:
			start := g.time()
			end := start + pick(g, []bigtable.Timestamp{1, 2, 5})*map[bool]bigtable.Timestamp{true: 1, false: 1000}[g.micros]
			if g.r.IntN(4) == 0 {
				end = 0
			}
			fam = pick(g, []string{"a", "b", "s"})
			m.DeleteTimestampRange(fam, q, start, end)
			what += fmt.Sprintf(" delete %s:%q@%d-%d", fam, q, start, end)
		case n < 18:
			fam = pick(g, []string{"a", "b", "s"})
			m.DeleteCellsInColumn(fam, q)
			what += fmt.Sprintf(" delete %s:%q", fam, q)
		case n < 19:
			fam = pick(g, []string{"a", "b", "s", "r"})
			m.DeleteCellsInFamily(fam)
			what += " delete " + fam
		default:
			m.DeleteRow()
			what += " delete row"
		}
	}
	return m, what
}
