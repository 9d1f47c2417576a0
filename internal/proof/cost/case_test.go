package cost

import (
	"slices"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// call is a public call, or a few that belong together, of which the cost is counted and grows with n.
type call struct {
	covers []string // the calls that it counts, as "Repository.Put" or "tenants.List"
	name   string   // in the table; empty is the first of covers
	of     string   // what n counts; empty where nothing grows
	sizes  []int    // nil is 1
	schema tsdb.SchemaOptions
	opts   tsdbtest.Options
	empty  bool // there is no table yet
	// run prepares a store, and returns what is counted.
	run func(w *world, n int) func()

	requests      map[string]shape // by method
	seen, written shape
	varies        bool // from run to run, within its shapes: the document has no figures of it but these
}

// group is a table of the document.
type group struct {
	title string
	calls []call
}

// counted is a call with its figures, by size.
type counted struct {
	call
	figures []figure
}

// at returns the sizes. Under the race detector, where all takes ten times as long, large ones are left out.
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

// measure counts a call at all of its sizes, and fails where it does not grow as it says.
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
			t.Errorf("%s with n = %d: %d %s, and it is said to be %s", c, n, got, what, want)
		}
	}
	for _, m := range methods {
		expect(m+" requests", c.requests[m], f.calls[m])
	}
	expect("rows seen", c.seen, f.seen)
	if f.returned != f.seen {
		t.Errorf("%s with n = %d returned %d rows, and the engine looked at %d: the document says that they are as many", c, n, f.returned, f.seen)
	}
	expect("rows written", c.written, f.written)
}

// only is the shapes of a call that makes requests of one method.
func only(method string, s shape) map[string]shape { return map[string]shape{method: s} }

// drain runs a sequence to its end, and returns how long it was.
func drain[T any](w *world, seq func(func(T, error) bool)) int {
	w.Helper()
	n := 0
	for _, err := range seq {
		w.ok(err)
		n++
	}
	return n
}

// want fails a test whose call did not answer with as much as it should.
func (w *world) want(got, want int) {
	w.Helper()
	if got != want {
		w.Fatalf("the call answered with %d, want %d", got, want)
	}
}
