package tour

import (
	"fmt"
	"math"
	"net/url"
	"testing"
	"time"
)

// TestChartsReadRollups: charts of hours are read from the rollups, all numbers of a vehicle, and show what its points
// say.
func TestChartsReadRollups(t *testing.T) {
	r := start(t, brokerNone, "-dir", t.TempDir(), "-vehicles", "4", "-history", "12h", "-every", "30s")
	client, base := r.login("acme")
	var latest struct {
		Rows []struct{ ID string }
	}
	read(t, client, base+"/api/acme/telemetry/latest", &latest)
	if len(latest.Rows) == 0 {
		t.Fatal("acme has no vehicle")
	}
	now, rolled, asked := time.Now().UTC(), 0, 0
	query := func(hours, columns int) (out struct {
		Window float64 `json:"window_ms"`
		Lines  []struct {
			Rollup string
			T      []float64
			V      []*float64
			Lo, Hi []*float64
		}
	},
	) {
		q := url.Values{
			"entity": {latest.Rows[0].ID}, "columns": {fmt.Sprint(columns)}, "from": {now.Add(-time.Duration(hours) * time.Hour).Format(time.RFC3339)}, "to": {now.Format(time.RFC3339)},
		}
		for _, m := range measured {
			q.Add("field", m.field)
		}
		read(t, client, base+"/api/acme/telemetry/lines?"+q.Encode(), &out)
		return out
	}
	points := query(11, 4000)
	for _, hours := range []int{11, 8, 5} {
		got := query(hours, 100)
		for i, l := range got.Lines {
			asked++
			if l.Rollup != "" {
				rolled++
			}
			if len(l.T) < 2 || len(l.Lo) != len(l.T) || len(l.Hi) != len(l.T) {
				t.Errorf("%d h of %s: %d samples with %d and %d ends of the band", hours, measured[i].field, len(l.T), len(l.Lo), len(l.Hi))
			}
			for n, low := range l.Lo {
				if n == 0 || low == nil || n >= len(l.Lo)-2 { // the newest window is open, and the end of the line is none
					continue
				}
				// Each point in the middle of a window is within its band.
				for k, at := range points.Lines[i].T {
					if v := points.Lines[i].V[k]; v != nil && math.Abs(at-l.T[n]) < got.Window/4 && (*v < *low-0.05 || *v > *l.Hi[n]+0.05) {
						t.Errorf("%d h of %s: the point %v at %v is not within the band of %v to %v at %v of windows of %v ms", hours, measured[i].field, *v, time.UnixMilli(int64(at)).UTC(), *low, *l.Hi[n], time.UnixMilli(int64(l.T[n])).UTC(), got.Window)
					}
				}
			}
		}
	}
	t.Logf("rollups answered %d of %d lines", rolled, asked)
	if rolled != asked || asked != 3*len(measured) {
		t.Errorf("rollups answered %d of %d lines, want all of %d", rolled, asked, 3*len(measured))
	}
	for i, l := range points.Lines {
		if l.Rollup != "" || len(l.T) < 100 {
			t.Errorf("a chart that shows all points of %s is read from %q and has %d", measured[i].field, l.Rollup, len(l.T))
		}
	}
}
