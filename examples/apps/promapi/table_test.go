package main

import (
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/fieldtable"
)

// TestTableOfFields: each field of the table is the metric that it ought to be, with the float that is nearest to its
// number.
func TestTableOfFields(t *testing.T) {
	s := mappedOver(t, someLimits)
	cells := fieldtable.Store(t, s.store)
	of := &messages{set: fieldtable.Descriptors(), byDataset: map[string]string{"t_pb": fieldtable.Message, "t_pb_zstd": fieldtable.Message}}
	s.sources[1] = shown(t, s.store, of)
	different := 0
	metrics := map[string]map[int64]string{}
	for _, c := range cells {
		metric := c.Dataset
		if c.Field != "" {
			metric += "_" + promName(c.Field)
		}
		if metrics[metric] == nil {
			metrics[metric] = s.vector(metric+`[4d]`, fieldtable.End)[fieldtable.Key+"="+fieldtable.Entity]
		}
		got, some := metrics[metric][c.Time.UnixMilli()]
		if wanted := c.Number.Kind() != codec.KindInvalid; some != wanted || wanted && !fieldtable.Nearest(c.Number, got) {
			different++
			t.Errorf("%v: %s is %q, want %v", c, metric, got, c.Number)
		}
	}
	t.Logf("%d cells, %d different", len(cells), different)
}
