package retention_test

import (
	"encoding/json"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestCompleteAfterADrift: a plan that restores a policy records from which time on the policy of a console has kept
// the points, whether or not a schema could declare that policy.
func TestCompleteAfterADrift(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	short := bigtable.MaxAgePolicy(2 * day)
	const half = 500 * time.Millisecond
	for _, c := range []struct {
		drift bigtable.GCPolicy
		kept  time.Duration // 0 for all
	}{
		{short, 2 * day},
		{bigtable.MaxAgePolicy(2*day + half), 2*day + half},
		{bigtable.UnionPolicy(short, bigtable.MaxVersionsPolicy(3)), 2 * day},
		{bigtable.UnionPolicy(bigtable.MaxAgePolicy(3*day), bigtable.MaxAgePolicy(2*day+half)), 2*day + half},
		{bigtable.IntersectionPolicy(short, bigtable.MaxAgePolicy(3*day+half)), 3*day + half},
		{bigtable.IntersectionPolicy(short, bigtable.MaxVersionsPolicy(3)), 0},
		{bigtable.MaxVersionsPolicy(3), 0},
		{bigtable.NoGcPolicy(), 0},
		{bigtable.MaxAgePolicy(40 * day), 0},
	} {
		schema := define(t, "readings", days("d30", 30), hourly(days("d365", 365)))
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, schema)
		set(t, admin(t, conn), "d30", c.drift)
		p := plan(t, store, schema)
		apply(t, store, p, p.Destructive()...)
		var entry struct {
			From map[string]int64 `json:"complete_from_ms"`
		}
		if err := json.Unmarshal([]byte(catalogue(t, table)["!dataset#readings _sys:json"]), &entry); err != nil {
			t.Fatal(err)
		}
		from, ok := entry.From["d30"]
		if kept := now.Sub(time.UnixMilli(from)); ok != (c.kept > 0) || ok && (kept > c.kept || kept < c.kept-time.Hour) {
			t.Errorf("%v: complete from %v before now, known %v; want %v", c.drift, kept, ok, c.kept)
		}
	}
}
