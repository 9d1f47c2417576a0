package fieldtable

import (
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestReader: the reader that all programs use reads each cell as the table says, alone and with all fields of its
// payload.
func TestReader(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	cells := Store(t, store)
	opts := dynamic.Options{Descriptors: Descriptors(), Messages: map[string]string{"pb": Message}}
	datasets := map[string]tsdb.Dataset{}
	for d, err := range store.Datasets(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		datasets[d.Name()] = d
	}
	read := func(c Cell, schema func(tsdb.Dataset, dynamic.Field) (*tsdb.Schema[codec.Value], error)) codec.Value {
		field, err := dynamic.NewField(c.Field, opts)
		if err != nil {
			t.Fatal(err)
		}
		s, err := schema(datasets[c.Dataset], field)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.For(store, Tenant).AsOf(t.Context(), tsdb.NewEntity(Entity), c.Time)
		if err != nil {
			t.Errorf("%v: %v", c, err)
		}
		return p.Value
	}
	for _, c := range cells {
		whole, err := dynamic.Schema(datasets[c.Dataset], opts)
		if err != nil {
			t.Fatal(err)
		}
		p, err := whole.For(store, Tenant).AsOf(t.Context(), tsdb.NewEntity(Entity), c.Time)
		if err != nil {
			t.Errorf("%v: %v", c, err)
		}
		all, _ := p.Value.Lookup(c.Field)
		if all != c.Value {
			t.Errorf("%v is %v (%v), want %v (%v)", c, all, all.Kind(), c.Value, c.Value.Kind())
		}
		if n := read(c, dynamic.Numbers); n != c.Number {
			t.Errorf("%v has the number %v (%v), want %v (%v)", c, n, n.Kind(), c.Number, c.Number.Kind())
		}
		if state, _ := all.Text(); state != c.State {
			t.Errorf("%v as a state is %q, want %q", c, state, c.State)
		}
	}
	t.Logf("%d cells", len(cells))
}
