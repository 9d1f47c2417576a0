package web

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/fieldtable"
)

// tableOf returns the address of a query for fields of the only entity of a dataset of the table.
func tableOf(query, dataset string, fields ...string) string {
	v := url.Values{"entity": {fieldtable.Entity}, "from": {stampOf(fieldtable.Start)}, "to": {stampOf(fieldtable.End)}}
	for _, f := range fields {
		v.Add("field", shownAs(f))
	}
	return "/api/acme/" + dataset + "/" + query + "?" + v.Encode()
}

func shownAs(field string) string {
	if field == "" {
		return itself
	}
	return field
}

// TestTableOfFields: each field of the table is shown with all its digits, in tables and in files; its number is drawn
// as the nearest float; its state has its name.
func TestTableOfFields(t *testing.T) {
	p := newPage(t, nil)
	cells := fieldtable.Store(t, p.store)
	p.login("secret-of-acme")
	asked, read := map[string][]string{}, 0 // fields by dataset
	for _, c := range cells {
		if fields := asked[c.Dataset]; len(fields) == 0 || fields[len(fields)-1] != c.Field {
			asked[c.Dataset] = append(fields, c.Field)
		}
	}
	type place struct {
		dataset, field string
		at             int64
	}
	shown, filed, drawn, named := map[place]json.RawMessage{}, map[place]string{}, map[place]string{}, map[place][]band{}
	for dataset, fields := range asked {
		if strings.HasPrefix(dataset, "t_pb") {
			continue // the console has no descriptors
		}
		for len(fields) > 0 {
			some := fields[:min(len(fields), maxFields)]
			fields = fields[len(some):]
			var points struct {
				Points []struct {
					Time time.Time
					V    []json.RawMessage
				}
			}
			p.read(tableOf("points", dataset, some...)+"&size=100", &points)
			for _, row := range points.Points {
				for i, v := range row.V {
					shown[place{dataset, some[i], row.Time.UnixMilli()}] = v
				}
			}
			status, body := p.get(tableOf("csv", dataset, some...))
			rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
			if err != nil || status != http.StatusOK {
				t.Fatal(status, err)
			}
			for _, row := range rows[1:] {
				at, err := time.Parse(time.RFC3339Nano, row[1])
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range row[2:] {
					filed[place{dataset, some[i], at.UnixMilli()}] = v
				}
			}
			for _, f := range some {
				var got struct {
					Lines []struct {
						T []float64
						V []json.Number
					}
				}
				p.read(tableOf("lines", dataset, f)+"&gap=0s", &got)
				for i, v := range got.Lines[0].V {
					drawn[place{dataset, f, int64(got.Lines[0].T[i])}] = v.String()
				}
				var states struct{ Bands []band }
				p.read(tableOf("states", dataset, f)+"&gap=0s", &states)
				named[place{dataset: dataset, field: f}] = states.Bands
			}
		}
	}
	for _, c := range cells {
		if strings.HasPrefix(c.Dataset, "t_pb") {
			continue
		}
		at := place{c.Dataset, c.Field, c.Time.UnixMilli()}
		read++
		v := shown[at]
		if whole := (struct{ Text *string }{}); json.Unmarshal(v, &whole) == nil && whole.Text != nil { // what JavaScript does not hold
			v = json.RawMessage(*whole.Text)
			if !json.Valid(v) {
				v, _ = json.Marshal(*whole.Text)
			}
		}
		if !fieldtable.Same(c.Value, v) {
			t.Errorf("%v is %s on a page, want %v", c, shown[at], c.Value)
		}
		if want := csvValueOf(c.Value); filed[at] != want {
			t.Errorf("%v is %q in a file, want %q", c, filed[at], want)
		}
		number, wanted := c.Number.Number()
		wanted = wanted && !math.IsNaN(number) && !math.IsInf(number, 0)
		if got := drawn[at]; wanted != (got != "") || wanted && !fieldtable.Nearest(c.Number, got) {
			t.Errorf("%v is drawn at %q, want %v", c, got, c.Number)
		}
		got := ""
		for _, b := range named[place{dataset: c.Dataset, field: c.Field}] {
			if int64(b.From) <= at.at && at.at < int64(b.To) {
				got = b.State
			}
		}
		if got != c.State {
			t.Errorf("%v is the state %q, want %q", c, got, c.State)
		}
	}
	t.Logf("%d cells", read)
}

// csvValueOf is a value as text, with all its digits.
func csvValueOf(v codec.Value) string {
	if text, ok := v.Text(); ok {
		return text
	}
	if v.Kind() == codec.KindInvalid || v.Kind() == codec.KindNull {
		return ""
	}
	return v.String()
}
