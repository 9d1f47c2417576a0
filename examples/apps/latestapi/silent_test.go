package main

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

func TestSilent(t *testing.T) {
	a := newAPI(t)
	for i, device := range []string{"a", "b", "c"} {
		p := []tsdb.Point[Reading]{{Entity: tsdb.NewEntity("berlin", device), Time: noon.Add(-time.Duration(i) * time.Hour), Value: Reading{TempC: num(1)}}}
		if err := put(t.Context(), weather.For(a.store, acme), p); err != nil {
			t.Fatal(err)
		}
	}
	const path = "/v1/weather/silent?site=berlin"
	a.get(path+"&since=2026-06-01T12:00:00Z").want(t, 200, `{"silent":[`+
		`{"key":{"site":"berlin","device":"c"},"last":"2026-06-01T10:00:00Z"},`+
		`{"key":{"site":"berlin","device":"b"},"last":"2026-06-01T11:00:00Z"}],"more":false}`)
	a.get(path+"&since=2026-06-01T12:00:00Z&limit=1").want(t, 200, `{"silent":[{"key":{"site":"berlin","device":"c"},"last":"2026-06-01T10:00:00Z"}],"more":true}`)
	a.get("/v1/weather/silent?site=hamburg&since=2026-06-01T12:00:00Z").want(t, 200, `{"silent":[],"more":false}`)
	for query, field := range map[string]string{"": "since", "&since=noon": "since", "&since=2026-06-01T12:00:00Z&limit=0": "limit", "&device=a": "device"} {
		if p := a.get(path+query).wantProblem(t, invalidInput); p.Field != field {
			t.Errorf("%q: the problem is with %q, want %q", query, p.Field, field)
		}
	}
}
