package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/devices"
	"github.com/tidemark-go/tidemark/tsdb"
)

// TestDevices shows the points of devices' messages: each field of each point, with its exact time.
func TestDevices(t *testing.T) {
	p := newPage(t, nil)
	p.login("secret-of-acme")
	cases, now := devices.Cases(t), time.Now().UTC()
	points := make([][]tsdb.Point[codec.Record], len(cases))
	for i, c := range cases { // before the console reads the catalogue
		points[i] = c.Put(t, p.store, acme, now)
	}
	for i, c := range cases {
		for _, point := range points[i] {
			var names []string
			for name := range point.Value.All() {
				names = append(names, name)
			}
			for few := range slices.Chunk(names, maxFields) {
				query := url.Values{"entity": {point.Entity.String()}, "field": few, "from": {stampOf(point.Time)}, "to": {stampOf(point.Time.Add(1))}}
				status, body := p.get("/api/acme/" + c.Schema(t).Name() + "/points?" + query.Encode())
				var got struct {
					Points []struct {
						Time time.Time
						V    []json.RawMessage
					}
				}
				if err := json.Unmarshal([]byte(body), &got); status != http.StatusOK || err != nil || len(got.Points) != 1 || !got.Points[0].Time.Equal(point.Time) {
					t.Errorf("%s: status %d, %v: %s, want the point at %v", c.Name, status, err, body, point.Time)
					continue
				}
				for i, name := range few {
					v, _ := point.Value.Lookup(name)
					if shown := string(got.Points[0].V[i]); !sameInJSON(t, shown, v) {
						t.Errorf("%s: %s is shown as %s, want %v", c.Name, name, shown, v)
					}
				}
			}
		}
	}
}

// sameInJSON reports whether a JSON text is a value. JSON does not tell integers from floats.
func sameInJSON(t *testing.T, text string, v codec.Value) bool {
	t.Helper()
	var shown any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&shown); err != nil {
		t.Fatal(err)
	}
	if number, ok := shown.(json.Number); ok {
		got, err := number.Float64()
		want, isNumber := v.Number()
		return err == nil && isNumber && got == want
	}
	return codec.ValueOf(shown) == v
}
