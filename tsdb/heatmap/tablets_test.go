package heatmap_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb/heatmap"
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
		tablet := heatmap.Tablet{First: test.first, Last: test.last}
		if tenant, dataset := tablet.Tenant(), tablet.Dataset(); tenant != test.tenant || dataset != test.dataset {
			t.Errorf("%v is of tenant %q and dataset %q, want %q and %q", tablet, tenant, dataset, test.tenant, test.dataset)
		}
	}
	tablet := heatmap.Tablet{First: "acme#readings#b#7", Last: "acme#readings#d#3", CPU: 0.5}
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
	var counts []heatmap.Count
	for minute := range 10 {
		var keys [][]byte
		for i := range 20 {
			keys = append(keys, fmt.Appendf(nil, "tenant-%d#readings#device-%02d#9223370254000000000", i/10, i))
		}
		counts = append(counts, heatmap.Count{At: at.Add(time.Duration(minute) * time.Minute), Metric: heatmap.Writes, Rows: 2000, Keys: keys})
	}
	r, err := heatmap.FromCounts(at, at.Add(10*time.Minute), time.Minute, counts)
	if err != nil {
		t.Fatal(err)
	}
	hot := heatmap.Tablet{First: "tenant-0#readings#device-04#", Last: "tenant-0#readings#device-07#9", From: at.Add(2 * time.Minute), To: at.Add(5 * time.Minute), CPU: 0.8}
	elsewhere, before := hot, hot
	elsewhere.First, elsewhere.Last = "x", "y"
	before.From, before.To = at.Add(-time.Hour), at
	o := heatmap.PictureOptions{Tablets: []heatmap.Tablet{hot, elsewhere, before}}

	var page, picture, plain bytes.Buffer
	if err := errors.Join(r.WriteHTML(&page, o), r.WritePNG(&picture, o), r.WritePNG(&plain, heatmap.PictureOptions{})); err != nil {
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
	img, err := png.Decode(&picture)
	if err != nil {
		t.Fatal(err)
	}
	const left, top, width, height = 330, 84, 64, 24 // of the cells, and of one
	red := func(x, y int) bool {
		r, g, b, _ := img.At(x, y).RGBA()
		return r>>8 == 224 && g>>8 == 49 && b>>8 == 49
	}
	for _, p := range []struct {
		x, y int
		want bool
	}{
		{2*width + 30, 4 * height, true}, {2 * width, 6 * height, true}, {5*width - 1, 7 * height, true}, {4 * width, 8*height - 1, true}, // the four sides
		{3*width + 30, 6*height + 10, false}, {2*width - 1, 6 * height, false}, {5 * width, 6 * height, false}, {3 * width, 4*height - 1, false}, {3 * width, 8 * height, false},
	} {
		if got := red(left+p.x, top+p.y); got != p.want {
			t.Errorf("the frame is at %d, %d: %v, want %v", p.x, p.y, got, p.want)
		}
	}
	if err := r.Ranked().WritePNG(&plain, o); !errors.Is(err, heatmap.ErrInvalid) {
		t.Errorf("tablets on a recording with ranks: %v, want ErrInvalid", err)
	}
	if err := r.WriteHTML(&plain, heatmap.PictureOptions{Tablets: make([]heatmap.Tablet, 1001)}); !errors.Is(err, heatmap.ErrInvalid) {
		t.Errorf("1001 tablets: %v, want ErrInvalid", err)
	}
	if err := new(heatmap.Recording).WritePNG(&plain, o); err != nil {
		t.Errorf("an empty recording: %v", err)
	}
}
