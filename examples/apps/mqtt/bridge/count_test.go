package bridge

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// total reads what a route with count=1h has counted for an entity in all hours.
func total(t testing.TB, store *tsdb.Store, id tenant.ID, dataset, device string, sums ...string) window.Bucket {
	t.Helper()
	var measures []rollup.Measure[codec.Record]
	for _, name := range sums {
		measures = append(measures, rollup.Measure[codec.Record]{Name: name, Decimals: 3, Max: 1e12, Of: func(codec.Record) (float64, bool) { return 0, false }})
	}
	counts := rollup.MustDefine(inbound.CountName, window.Every(time.Hour), measures, rollup.Options{Mode: rollup.ByMessage, Remember: 24 * time.Hour, MaxMessages: 100_000})
	schema := tsdb.MustDefine(dataset, tsdb.Key("device"), codec.Records(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{counts}})
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b, err := rollup.For(counts, schema.For(store, id)).Total(t.Context(), tsdb.NewEntity(device), tsdb.Between(from, from.Add(24*time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCountsOnce: a message that comes again is counted once, whether the device or the broker sent it again.
func TestCountsOnce(t *testing.T) {
	m := startBroker(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	b := run(t, store, m, routesOf(t, "v1/+tenant/+device/views dataset=views key=device time=at,s count=1h id=message_id sum=bytes"), Config{})
	device := m.client("device", nil)
	for range 3 {
		publish(t, device, "v1/acme/t1/views", `{"at":1767225600,"message_id":"a","bytes":7}`)
		publish(t, device, "v1/acme/t1/views", `{"at":1767225601,"message_id":"b","bytes":1.5}`)
	}
	waitStats(t, b, func(s Stats) bool { return s.Counted == 6 && s.Waiting == 0 })
	got := total(t, store, acme, "views", "t1", "bytes")
	if got.Points != 2 || got.Values[0].Sum != 8.5 {
		t.Errorf("%d messages and %v bytes, want 2 and 8.5", got.Points, got.Values[0].Sum)
	}
	if got := points(t, store, acme, "views", "t1"); got != nil {
		t.Errorf("points %q, want none: messages that are counted are not stored", got)
	}
}
