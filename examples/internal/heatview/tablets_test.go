package heatview_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/internal/heat"
)

// TestTabletNames: a tablet is a tenant's or a dataset's only if all its rows are.
func TestTabletNames(t *testing.T) {
	for _, test := range []struct{ first, last, tenant, dataset string }{
		{"acme#readings#a#9223370", "acme#readings#z", "acme", "readings"},
		{"acme#readings!head#a", "acme#readings!head#z#", "acme", "readings"},
		{"acme#orders#a#", "acme#readings#z#", "acme", ""},
		{"acme#readings#a#", "beta#readings#z#", "", ""},
		{"", "acme#readings#z#", "", ""},
		{"acme#readings#a#", "", "", ""},
		{"", "", "", ""},
	} {
		tablet := heatview.Tablet{First: test.first, Last: test.last}
		if tenant, dataset := tablet.Tenant(), tablet.Dataset(); tenant != test.tenant || dataset != test.dataset {
			t.Errorf("%v is of tenant %q and dataset %q, want %q and %q", tablet, tenant, dataset, test.tenant, test.dataset)
		}
	}
	tablet := heatview.Tablet{First: "acme#readings#b#7", Last: "acme#readings#d#3", CPU: 0.5}
	for prefix, want := range map[string]bool{
		"": true, "acme#": true, "acme#readings#a#": false, "acme#readings#b#": true, "acme#readings#c#": true, "acme#readings#d#": true, "acme#readings#e#": false, "beta#": false,
	} {
		if got := tablet.Overlaps(prefix); got != want {
			t.Errorf("%v has keys that begin with %q: %v, want %v", tablet, prefix, got, want)
		}
	}
	if got := tablet.String(); got != "acme#readings#b#7 to acme#readings#d#3, 50% of its server" {
		t.Errorf("the tablet is shown as %q", got)
	}
}

// TestTabletsAreOutlined: a picture frames the lines and columns that a tablet has, and no others.
func TestTabletsAreOutlined(t *testing.T) {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	var counts []heatview.Count
	for minute := range 10 {
		var keys [][]byte
		for i := range 20 {
			keys = append(keys, fmt.Appendf(nil, "tenant-%d#readings#device-%02d#9223370254000000000", i/10, i))
		}
		counts = append(counts, heatview.Count{At: at.Add(time.Duration(minute) * time.Minute), Kind: heat.Writes, Rows: 2000, Keys: keys})
	}
	r := heatview.FromCounts(at, at.Add(10*time.Minute), time.Minute, counts)
	hot := heatview.Tablet{First: "tenant-0#readings#device-04#", Last: "tenant-0#readings#device-07#9", From: at.Add(2 * time.Minute), To: at.Add(5 * time.Minute), CPU: 0.8}
	elsewhere, before := hot, hot
	elsewhere.First, elsewhere.Last = "x", "y"
	before.From, before.To = at.Add(-time.Hour), at
	var page, refused bytes.Buffer
	if err := heatview.WriteHTML(&page, r, hot, elsewhere, before); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(page.String(), `"tablets":`)
	var tablets []struct {
		Lines   [][2]int
		Columns [2]int
	}
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&tablets); err != nil || len(tablets) != 3 {
		t.Fatalf("the page has the tablets %v, %v", tablets, err)
	}
	if got := fmt.Sprint(tablets[0]); got != "{[[4 8] [0 1] [0 1]] [2 5]}" {
		t.Errorf("the tablet is at %s, want lines 4 to 7 of the keys, the first dataset and tenant, and columns 2 to 4", got)
	}
	for _, other := range tablets[1:] {
		if fmt.Sprint(other) != "{[[0 0] [0 0] [0 0]] [0 0]}" {
			t.Errorf("a tablet that is not in the picture is at %v", other)
		}
	}
	if err := heatview.WriteHTML(&refused, heatview.Rank(r), hot); err == nil || refused.Len() > 0 {
		t.Errorf("tablets on a recording with ranks: %v, want an error", err)
	}
	if err := heatview.WriteHTML(&page, new(heat.Recording), hot); err != nil {
		t.Errorf("an empty recording: %v", err)
	}
}
