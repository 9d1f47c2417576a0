package tour

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestRollupsHaveAllNumbers: the rollup of an hour, and the windows for charts, have each number that a vehicle sent.
// In JSON a speed of 43 has no point, as most zeros of a parked vehicle.
func TestRollupsHaveAllNumbers(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	if err := store.Ensure(t.Context(), telemetry); err != nil {
		t.Fatal(err)
	}
	routes, err := inbound.ParseRoutes(strings.NewReader(route))
	if err != nil {
		t.Fatal(err)
	}
	datasets, err := inbound.NewDatasets(t.Context(), store, routes.Keys(), inbound.Options{Schemas: []*tsdb.Schema[codec.Record]{telemetry}})
	if err != nil {
		t.Fatal(err)
	}
	hour := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)
	v := newVehicle(1, 0)
	var points []tsdb.Point[codec.Record]
	sums := map[string]float64{}
	for at := hour; at.Before(hour.Add(time.Hour)); at = at.Add(5 * time.Second) {
		r := v.measure(at)
		body, err := json.Marshal(payload{at.UnixMilli(), r})
		if err != nil {
			t.Fatal(err)
		}
		match, names := routes.Match(v.topic())
		events, err := match.Events(t.Context(), datasets, v.id, inbound.Message{Names: names, Payload: body})
		if err != nil {
			t.Fatal(err)
		}
		points = append(points, tsdb.Point[codec.Record]{Entity: events[0].Entity, Time: events[0].Time, Value: events[0].Record})
		for name, x := range map[string]float64{"speed_kmh": r.Speed, "battery_pct": r.Battery, "motor_c": r.Motor} {
			sums[name] += x
		}
	}
	repo := telemetry.For(store, v.id)
	if _, err := repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	by, err := window.New(window.Every(time.Hour), shown(), window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := tsdb.Between(hour, hour.Add(time.Hour))
	check := func(from string, bucket window.Bucket) {
		for i, m := range measured {
			got, n := bucket.Values[i], int64(len(points))
			if got.Count != n || math.Abs(got.Mean-sums[m.field]/float64(n)) > 0.05 {
				t.Errorf("%s: %s of %s is a mean of %v from %d of %d points; the points say %v", from, m.field, v.name, got.Mean, got.Count, n, sums[m.field]/float64(n))
			}
		}
	}
	for bucket, err := range by.Read(t.Context(), repo, v.entity(), in) {
		if err != nil {
			t.Fatal(err)
		}
		check("the windows", bucket)
	}
	for bucket, err := range rollup.For(hours, repo).Buckets(t.Context(), v.entity(), in) {
		if err != nil {
			t.Fatal(err)
		}
		check("the rollup", bucket)
	}
}
