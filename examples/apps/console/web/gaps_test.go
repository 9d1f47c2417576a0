package web

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestGaps: the gap follows the slowest of the rates at which an entity has sent. A tenant whose ranges are limited
// still gets a line from a rollup, with the rates of the times that it may read.
func TestGaps(t *testing.T) {
	limiter, err := limit.New(limit.Table{Defaults: limit.Limits{RangeLength: 24 * time.Hour}}, limit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	readings := tsdb.MustDefine("readings", tsdb.Key("device"), codec.Records(), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: limiter}}, readings)
	repo, e := readings.For(store, acme), tsdb.NewEntity("d")
	var points []tsdb.Point[codec.Record]
	for i := range 30 {
		points = append(points, tsdb.Point[codec.Record]{Entity: e, Time: noon.Add(time.Duration(i) * time.Minute)},
			tsdb.Point[codec.Record]{Entity: e, Time: noon.Add(2*time.Hour + time.Duration(i)*time.Second)})
	}
	if _, err := repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to time.Time
		want     time.Duration
	}{
		{noon, noon.Add(3 * time.Hour), 5 * time.Minute},
		{noon.Add(2 * time.Hour), noon.Add(3 * time.Hour), 7200 * time.Millisecond}, // two columns are longer than five seconds
		{noon.Add(-12 * time.Hour), noon.Add(12 * time.Hour), 5 * time.Minute},
		{noon.Add(-100 * 24 * time.Hour), noon.Add(100 * 24 * time.Hour), 0}, // nothing that it may read
		{noon.Add(-2 * time.Hour), noon, 0},
	} {
		if got, _, err := gapOf(t.Context(), repo, e, c.from, c.to, 1000); err != nil || got != c.want {
			t.Errorf("from %v to %v: %v, %v; want %v", c.from, c.to, got, err, c.want)
		}
	}
}
