package tsdb_test

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// What lies from the start to the end of an interval, to the nanosecond, is what it contains.
func TestIntervalEnds(t *testing.T) {
	from, to := start, start.Add(time.Hour)
	for name, in := range map[string]tsdb.Interval{
		"between":         tsdb.Between(from, to),
		"open start":      tsdb.Between(from, to).OpenStart(),
		"closed end":      tsdb.Between(from, to).ClosedEnd(),
		"open and closed": tsdb.Between(from, to).OpenStart().ClosedEnd(),
		"since":           tsdb.Since(from),
		"until":           tsdb.Until(to),
		"all":             tsdb.AllTime(),
		"all, closed":     tsdb.AllTime().OpenStart().ClosedEnd(),
	} {
		if first, ok := in.Start(); ok && (!in.Contains(first) || in.Contains(first.Add(-1))) || !ok && !in.Contains(time.Time{}) {
			t.Errorf("%s starts at %v, %t", name, first, ok)
		}
		if end, ok := in.End(); ok && (in.Contains(end) || !in.Contains(end.Add(-1))) || !ok && !in.Contains(to.AddDate(1000, 0, 0)) {
			t.Errorf("%s ends at %v, %t", name, end, ok)
		}
	}
}
