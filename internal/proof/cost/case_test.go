package cost

import (
	"slices"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// call is a public call, or a few related ones, with its expected cost, which grows with n.
type call struct {
	covers []string // the public calls that it counts, such as "Repository.Put" or "tenants.List"
	name   string   // its name in the table; empty means the first of covers
	of     string   // what n counts; empty if nothing grows
	sizes  []int    // the values of n; nil means 1 only
	schema tsdb.SchemaOptions
	opts   tsdbtest.Options
	empty  bool // the table does not exist yet
	detail bool // the document leaves it out: it follows from others
	// run prepares a store, and returns the function whose cost is counted.
	run func(w *world, n int) func()

	requests      map[string]shape // by method
	seen, written shape
	varies        bool // the cost varies from run to run within its shapes, so the document shows only the shapes
}

// group is a table of the document.
type group struct {
	title string
	calls []call
}

// counted is a call with its figures, one for each size.
type counted struct {
	call
	figures []figure
	every   bool // whether the cells list the figures of every size, not only of the first and the last
}

// at returns the sizes. Under the race detector, which is ten times as slow, it leaves out large ones.
func (c call) at() []int {
	switch {
	case c.sizes == nil:
		return []int{1}
	case testkit.Raced:
		return slices.DeleteFunc(slices.Clone(c.sizes), func(n int) bool { return n > 1000 })
	}
	return c.sizes
}

func (c call) String() string {
	if c.name != "" {
		return c.name
	}
	return "`" + c.covers[0] + "`"
}

// measure counts a call at all of its sizes, and fails if the cost is not as expected.
func (c call) measure(t *testing.T) counted {
	t.Helper()
	out := counted{call: c}
	for _, n := range c.at() {
		var s *tsdb.Schema[reading]
		if !c.empty {
			s = schema(c.schema)
		}
		w := newWorld(t, s, c.opts)
		run := c.run(w, n)
		f := w.count(run)
		c.check(t, n, f)
		out.figures = append(out.figures, f)
		w.ok(w.store.Close())
	}
	return out
}

func (c call) check(t *testing.T, n int, f figure) {
	t.Helper()
	expect := func(what string, want shape, got int) {
		t.Helper()
		if !want.holds(n, got) {
			t.Errorf("%s with n = %d: got %d %s, want %s", c, n, got, what, want)
		}
	}
	for _, m := range methods {
		expect(m+" requests", c.requests[m], f.calls[m])
	}
	expect("rows seen", c.seen, f.seen)
	if f.returned != f.seen {
		t.Errorf("%s with n = %d: got %d returned rows and %d rows seen by the engine, want equal numbers, as the document says", c, n, f.returned, f.seen)
	}
	expect("rows written", c.written, f.written)
}

// only returns the shapes of a call that makes requests of one method.
func only(method string, s shape) map[string]shape { return map[string]shape{method: s} }

// drain runs a sequence to its end, and returns its length.
func drain[T any](w *world, seq func(func(T, error) bool)) int {
	w.Helper()
	n := 0
	for _, err := range seq {
		w.ok(err)
		n++
	}
	return n
}

// wantN fails the test if a call returned another number of results than expected.
func (w *world) wantN(got, want int) {
	w.Helper()
	if got != want {
		w.Fatalf("the call returned %d, want %d", got, want)
	}
}
