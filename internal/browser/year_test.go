package browser

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

type meter struct {
	Constant float64 `json:"a_constant"`
	Load     float64 `json:"b_load"`
	State    string  `json:"c_state"`
}

// TestYear opens a year of 102,528 points: the mean is a line within the band of the lowest and the highest numbers,
// and not a solid block; a constant is a line; an outage of nine days is empty, also on Compare, where another meter
// goes on.
func TestYear(t *testing.T) {
	ctx := browser(t)
	var held atomic.Bool
	c := serveEmpty(t, ctx, &held, nil, nil)
	meters := tsdb.MustDefine("meters", tsdb.Key("meter"), codec.JSON[meter](), tsdb.SchemaOptions{})
	if err := c.store.Ensure(t.Context(), meters); err != nil {
		t.Fatal(err)
	}
	from := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(1, 0, 0)
	var points []tsdb.Point[meter]
	flush := func(most int) {
		if len(points) < most {
			return
		}
		if _, err := meters.For(c.store, mine).PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		points = points[:0]
	}
	for n := range 365 * 288 {
		at := from.Add(time.Duration(n) * 5 * time.Minute)
		if n < 200*288 || n >= 209*288 {
			// It swings from 20 to 80 each hour.
			points = append(points, tsdb.Point[meter]{Entity: tsdb.NewEntity("a"), Time: at, Value: meter{7, 50 + 30*math.Sin(float64(n)/12*2*math.Pi), []string{"on", "off"}[n/3000%2]}})
		}
		if n%4 == 0 {
			points = append(points, tsdb.Point[meter]{Entity: tsdb.NewEntity("b"), Time: at, Value: meter{7, 60, "on"}})
		}
		flush(1000)
	}
	flush(1)
	outage := from.AddDate(0, 0, 204)
	at := from.AddDate(0, 0, 100)
	page := func(path, query string, from, to time.Time) chromedp.Tasks {
		return chromedp.Tasks{chromedp.Navigate(c.url + path + "?tenant=acme&dataset=meters&" + query + "&" + fixed(from, to)), read}
	}
	step(t, ctx, "the login", loginWith(c.url, "token-of-acme"), theme("light"), chromedp.EmulateViewport(1280, 900))
	began := time.Now()
	var constant, load, band, silentConstant, silentLoad int
	var note string
	step(t, ctx, "the year", page("/entity", "entity=a", from, to))
	t.Logf("a year is drawn %v after its address was opened", time.Since(began).Round(time.Millisecond))
	shoot(t, ctx, "year")
	step(t, ctx, "its lines", ink(0, "line 0", at, &constant), ink(1, "line 0", at, &load), bandInk(1, "line 0", at, &band),
		ink(0, "line 0", outage, &silentConstant), ink(1, "line 0", outage, &silentLoad), chromedp.Text(".source", &note))
	if constant < 1 || constant > 3 {
		t.Errorf("the constant has %d pixels in a column, want a line", constant)
	}
	if load < 1 || load > 4 || band < 40 {
		t.Errorf("a column has %d pixels of a line and %d of a band, want a line of one or two within a band of most of the height", load, band)
	}
	if silentConstant != 0 || silentLoad != 0 {
		t.Errorf("the outage has %d and %d pixels of lines", silentConstant, silentLoad)
	}
	if note != "Read from the points: mean, lowest and highest of each 12h." {
		t.Errorf("the page says %q", note)
	}

	var one, other int
	step(t, ctx, "compare", page("/compare", "field=b_load&entity=a&entity=b", from, to), ink(0, "line 0", outage, &one), ink(0, "line 1", outage, &other))
	if one != 0 || other == 0 {
		t.Errorf("on Compare the outage has %d pixels of the line, and %d of the other meter's", one, other)
	}
	shoot(t, ctx, "year-compare")

	// An hour of points in a year is less than a column. It is drawn all the same.
	step(t, ctx, "an hour", page("/entity", "entity=a&field=a_constant", from, from.Add(time.Hour)), ink(0, "line 0", from.Add(32*time.Minute+30*time.Second), &constant))
	if constant < 1 || constant > 3 {
		t.Errorf("over an hour the constant has %d pixels in a column, want a line", constant)
	}
	early := from.AddDate(-1, 0, 0)
	var ends int
	step(t, ctx, "its first hour in a year", page("/entity", "entity=a&field=a_constant", early.Add(time.Hour), from.Add(time.Hour)), ink(0, "line 0", from.Add(30*time.Minute), &ends))
	if ends == 0 {
		t.Error("a constant that is shorter than a column of pixels is not drawn")
	}
	c.quiet(t)
}
