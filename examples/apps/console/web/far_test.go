package web

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// TestPointsOfCenturies: every query answers where points are of the years 2400 and 58803.
func TestPointsOfCenturies(t *testing.T) {
	far := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[map[string]any](), tsdb.SchemaOptions{Precision: tsdb.Milliseconds})
	p := newPageOn(t, far, nil)
	p.login("secret-of-acme")
	for _, at := range []time.Time{noon, time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if err := far.For(p.store, acme).Put(tenant.NewContext(t.Context(), acme), roof, at, map[string]any{"temp": 1.5, "mode": "on"}); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Date(58803, 2, 28, 1, 2, 3, 0, time.UTC)
	m := bigtable.NewMutation()
	m.Set("keep", "p:json", bigtable.Timestamp(at.UnixMilli()*1000), []byte(`{"temp":3,"mode":"off"}`))
	if err := p.table.Apply(t.Context(), fmt.Sprintf("acme#readings#berlin#roof-7#%019d", (1<<63-1)-at.UnixMilli()), m); err != nil {
		t.Fatal(err)
	}
	const stamp = "+058803-02-28T01:02:03Z"
	for _, span := range [][2]string{
		{"2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z"}, {"2399-01-01T00:00:00Z", "2401-01-01T00:00:00Z"}, {"+058803-01-01T00:00:00Z", "+058804-01-01T00:00:00Z"},
	} {
		for name, more := range map[string][]string{
			"points": {"field", "temp", "size", "10"}, "csv": {"field", "temp"}, "lines": {"field", "temp", "columns", "100"}, "states": {"field", "mode", "columns", "100"},
			"sparks": {"field", "temp"}, "latest": {"field", "temp"}, "silent": {}, "asof": {"field", "temp", "time", stamp},
		} {
			q := append([]string{"entity", roof.String(), "from", span[0], "to", span[1]}, more...)
			switch name {
			case "latest", "silent", "sparks":
				q = append(map[string][]string{"silent": {"since", "+100000-01-01T00:00:00Z"}, "sparks": {"entity", roof.String()}}[name], more...)
			case "asof":
				q = append([]string{"entity", roof.String()}, more...)
			}
			status, body := p.get(address(name, q...))
			ok := json.Valid([]byte(body))
			switch {
			case name == "csv":
				rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
				ok = err == nil && len(rows) == 2 && (span[0][0] != '+' || strings.Contains(body, stamp))
			case name == "points":
				ok = ok && (span[0][0] != '+' || strings.Contains(body, stamp))
			case name == "latest" || name == "asof" || name == "silent":
				ok = ok && strings.Contains(body, fmt.Sprint(at.UnixMilli()))
			}
			if status != http.StatusOK || !ok {
				t.Errorf("%s of %v: %d %.300s", name, span, status, body)
			}
		}
	}
}
