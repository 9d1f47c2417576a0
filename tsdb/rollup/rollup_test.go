package rollup_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type reading struct {
	TempC float64 `json:"t"`
	Wet   *int64  `json:"w,omitempty"`
}

var (
	acme   = tenant.MustParse("acme")
	acme2  = tenant.MustParse("acme2")
	berlin = mustZone("Europe/Berlin")
	start  = time.Date(2026, 3, 28, 20, 0, 0, 0, time.UTC) // daylight saving time starts in the following night
)

func mustZone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

func measures() []rollup.Measure[reading] {
	return []rollup.Measure[reading]{
		{Name: "temp", Of: func(r reading) (float64, bool) { return r.TempC, true }, Decimals: 2, Max: 1000},
		{Name: "wet", Of: func(r reading) (float64, bool) {
			if r.Wet == nil {
				return 0, false
			}
			return float64(*r.Wet), true
		}, Max: 1 << 20, Aggregates: window.Mean},
	}
}

// three are rollups by minute, hour and day in Berlin, each from the one before.
type three struct {
	minute, hour, day *rollup.Rollup[reading]
	schema            *tsdb.Schema[reading]
}

func newThree(opts tsdb.SchemaOptions) three {
	var t three
	t.minute = rollup.MustDefine("min", window.Every(time.Minute), measures(), rollup.Options{Span: time.Hour})
	t.hour = rollup.MustDefine("hour", window.Every(time.Hour).In(berlin), measures(), rollup.Options{From: "min", Lateness: 5 * time.Minute})
	t.day = rollup.MustDefine("day", window.Days(1).In(berlin), measures(), rollup.Options{From: "hour"})
	opts.Rollups = []tsdb.Rollup{t.minute, t.hour, t.day}
	t.schema = tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), opts)
	return t
}

func (t three) all() []*rollup.Rollup[reading] {
	return []*rollup.Rollup[reading]{t.minute, t.hour, t.day}
}

type clock = testkit.Clock

func only(ids ...tenant.ID) func(context.Context) iter.Seq2[tenant.ID, error] {
	return func(context.Context) iter.Seq2[tenant.ID, error] {
		return func(yield func(tenant.ID, error) bool) {
			for _, id := range ids {
				if !yield(id, nil) {
					return
				}
			}
		}
	}
}
