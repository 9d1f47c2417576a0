package web

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

var turnEntities = flag.Int("turn.entities", 50, "how many entities TestTurnsModel has; 5000 is the whole check")

// TestTurnsModel compares the newest value and time of 40 fields, of which devices send three at a time, with a model:
// some points are late, some values null, and some whole numbers among fractions. Values that were not found are counted.
func TestTurnsModel(t *testing.T) {
	const fields, messages = 40, 30
	type value struct {
		at int64
		v  any
	}
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	p := newPage(t, nil)
	p.login("secret-of-acme")
	random := rand.New(rand.NewPCG(1, 2))
	model := map[string][fields]value{}
	var points []tsdb.Point[map[string]any]
	for i := range *turnEntities {
		e, of := tsdb.NewEntity("s", fmt.Sprintf("%05d", i)), [fields]value{}
		for m := range messages {
			at := noon.Add(time.Duration(m) * 10 * time.Second)
			if random.IntN(10) == 0 {
				at = at.Add(-75 * time.Second)
			}
			payload := map[string]any{}
			for k := range 3 {
				f := (3*m + k) % fields
				var v any = float64(random.IntN(1000)) / 8
				switch random.IntN(8) {
				case 0:
					v = nil
				case 1:
					v = random.IntN(1000)
				}
				payload[fmt.Sprintf("f%02d", f)] = v
				if v != nil && at.UnixMilli() >= of[f].at {
					of[f] = value{at.UnixMilli(), v}
				}
			}
			points = append(points, tsdb.Point[map[string]any]{Entity: e, Time: at, Value: payload})
		}
		model[e.String()] = of
	}
	if _, err := schema.For(p.store, acme).PutMany(tenant.NewContext(t.Context(), acme), points); err != nil {
		t.Fatal(err)
	}
	began, wrong, lacking, compared := time.Now(), 0, 0, 0
	for first := 0; first < fields; first += maxListFields {
		query := url.Values{}
		for f := first; f < min(fields, first+maxListFields); f++ {
			query.Add("field", fmt.Sprintf("f%02d", f))
		}
		var list struct {
			Rows []struct {
				ID string
				T  float64
				V  []any
				At []any
			}
		}
		p.read("/api/acme/readings/latest?"+query.Encode(), &list)
		if len(list.Rows) != *turnEntities {
			t.Fatalf("%d rows", len(list.Rows))
		}
		for _, r := range list.Rows {
			of := model[r.ID]
			for i, v := range r.V {
				want, at := of[first+i], r.T
				if r.At != nil && r.At[i] != nil {
					at = r.At[i].(float64)
				}
				compared++
				switch {
				case v == nil && want.v != nil:
					lacking++
				case v != nil && (fmt.Sprint(v) != fmt.Sprint(want.v) || int64(at) != want.at):
					if wrong++; wrong < 5 {
						t.Errorf("%s f%02d is %v at %v, want %v at %d", r.ID, first+i, v, at, want.v, want.at)
					}
				}
			}
		}
	}
	t.Logf("%d entities, %d values compared in %v: %d wrong, %d not found", *turnEntities, compared, time.Since(began).Round(time.Millisecond), wrong, lacking)
	if wrong > 0 || lacking > 0 && *turnEntities <= 50 {
		t.Errorf("%d wrong, %d not found", wrong, lacking)
	}
}
