package aggregate_test

import (
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestColumnsNeedAllOfAnAggregate: a measure that keeps a part of what an aggregate needs does not show it.
func TestColumnsNeedAllOfAnAggregate(t *testing.T) {
	spread := aggregate.Aggregate{Name: "spread", Kept: window.Min | window.Max}
	for kept, want := range map[window.Aggregates]int{window.Min: 0, window.Max | window.Sum: 0, window.Basic: 1} {
		columns := aggregate.Columns(nil).With("speed", kept, []aggregate.Aggregate{spread})
		if got := len(columns[0].Shown); got != want {
			t.Errorf("a measure that keeps %v shows %d aggregates, want %d", kept, got, want)
		}
	}
}
