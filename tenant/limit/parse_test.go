package limit_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

func TestParse(t *testing.T) {
	got, err := limit.Parse([]byte(`{
		"overrides": {
			"acme": {"points_per_second": 10000, "range_length": "0s"},
			"free": {"points_per_second": 1, "points_burst": 2, "bytes_per_second": 0, "entities": 9, "datasets": 5, "point_bytes": 8, "fan_out": 7, "concurrent_reads": 6},
			"same": {}
		},
		"defaults": {"points_per_second": 1000, "points_burst": 5000, "bytes_per_second": 10, "bytes_burst": 20, "range_length": "744h"},
		"share": 0.25
	}`))
	if err != nil {
		t.Fatal(err)
	}
	defaults := limit.Limits{PointsPerSecond: 1000, PointsBurst: 5000, BytesPerSecond: 10, BytesBurst: 20, RangeLength: 744 * time.Hour}
	want := limit.Table{Share: 0.25, Defaults: defaults, Overrides: map[tenant.ID]limit.Limits{
		acme:                     {PointsPerSecond: 10000, BytesPerSecond: 10, BytesBurst: 20},
		tenant.MustParse("free"): {PointsPerSecond: 1, PointsBurst: 2, RangeLength: 744 * time.Hour, Entities: 9, Datasets: 5, PointBytes: 8, FanOut: 7, ConcurrentReads: 6},
		tenant.MustParse("same"): defaults,
	}}
	if !equal(got, want) {
		t.Errorf("Parse = %+v, want %+v", got, want)
	}
	if got, err := limit.Parse([]byte(" {} ")); err != nil || !equal(got, limit.Table{}) {
		t.Errorf("Parse of an empty object = %+v, %v", got, err)
	}
}

func equal(a, b limit.Table) bool {
	return a.Share == b.Share && a.Defaults == b.Defaults && maps.Equal(a.Overrides, b.Overrides)
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "not JSON at line 1"},
		{"{\n\"share\": 1,\n}", "not JSON at line 3"},
		{"{} {}", "not JSON at line 1"},
		{"[]", `the document is "[]"; want an object`},
		{"null", "want an object"},
		{`{"default": {}}`, "default is unknown; want share, defaults or overrides"},
		{`{"Defaults": {}}`, "Defaults is unknown"},
		{`{"defaults": {}, "defaults": {}}`, "defaults is present twice"},
		{`{"defaults": 5}`, `defaults is "5"; want an object`},
		{`{"defaults": {"points_per_sec": 5}}`, "defaults.points_per_sec is unknown; want a limit, such as points_per_second"},
		{`{"defaults": {"points\n": 5}}`, `defaults."points\n" is unknown`},
		{`{"defaults": {"entities": 5, "entities": 6}}`, "defaults.entities is present twice"},
		{`{"defaults": {"entities": "5"}}`, "defaults.entities is"},
		{`{"defaults": {"entities": 1.5}}`, `defaults.entities is "1.5"; want a whole number, 0 for no limit, or up to 10000000`},
		{`{"defaults": {"entities": null}}`, "defaults.entities is"},
		{`{"defaults": {"entities": -1}}`, "defaults.entities is -1"},
		{`{"defaults": {"points_per_second": 99999999999999999999}}`, "defaults.points_per_second is"},
		{`{"defaults": {"points_burst": 5}}`, "defaults.points_burst is 5; want 0, because points_per_second is 0"},
		{`{"defaults": {"range_length": 5}}`, `defaults.range_length is "5"; want a duration in quotes, such as "744h"`},
		{`{"defaults": {"range_length": "5"}}`, "defaults.range_length is"},
		{`{"overrides": []}`, `overrides is "[]"; want an object`},
		{`{"overrides": {"a b": {}}}`, `overrides: tenant: invalid ID: tenant is "a b"`},
		{`{"overrides": {"acme": {}, "acme": {}}}`, "overrides.acme is present twice"},
		{`{"overrides": {"acme": {"x": 1}}}`, "overrides.acme.x is unknown"},
		{`{"overrides": {"acme": {"fan_out": 1000001}}}`, "overrides.acme.fan_out is 1000001; want 0 for no limit, or up to 1000000"},
		{`{"share": 0}`, `share is "0"; want a number above 0 and up to 1`},
		{`{"share": 1.01}`, "share is"},
		{`{"share": "0.5"}`, "share is"},
	} {
		got, err := limit.Parse([]byte(tt.text))
		if !errors.Is(err, invalid.ErrLimits) || !strings.Contains(err.Error(), tt.want) || !equal(got, limit.Table{}) {
			t.Errorf("Parse(%s) = %+v, %v, want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestLimitsInJSON(t *testing.T) {
	type profile struct{ Limits limit.Limits }
	in := profile{limit.Limits{PointsPerSecond: 5, RangeLength: 90 * time.Minute}}
	text, err := json.Marshal(in)
	if err != nil || string(text) != `{"Limits":{"points_per_second":5,"range_length":"1h30m0s"}}` {
		t.Fatalf("%s, %v", text, err)
	}
	out := profile{limit.Limits{FanOut: 3}}
	if err := json.Unmarshal(text, &out); err != nil || in != out {
		t.Errorf("round trip = %+v, %v; want %+v", out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"Limits": {"points_burst": 1}}`), &out); !errors.Is(err, invalid.ErrLimits) || in != out {
		t.Errorf("bad limits: %v, %+v", err, out)
	}
	if _, err := json.Marshal(limit.Table{Share: 7}); !errors.Is(err, invalid.ErrLimits) {
		t.Errorf("MarshalJSON of an invalid table: %v, want ErrInvalid", err)
	}
}

// FuzzParse: a parsed table is the same after it is written and parsed again, New accepts it, and nothing panics.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"share":0.25}`, `{"defaults":{"points_per_second":1000,"points_burst":5000,"range_length":"744h"}}`,
		`{"defaults":{"bytes_per_second":7},"overrides":{"acme":{"bytes_per_second":0},"b":{"entities":1}}}`,
		`{"overrides":{"acme":{"fan_out":1,"concurrent_reads":2,"point_bytes":3}}}`, `[`, `{"defaults":{"entities":1,"entities":2}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := limit.Parse(text)
		if err != nil {
			if !errors.Is(err, invalid.ErrLimits) {
				t.Fatalf("%v does not match ErrInvalid", err)
			}
			return
		}
		if _, err := limit.New(table, limit.Options{}); err != nil {
			t.Fatalf("New refuses a table that Parse accepted: %v", err)
		}
		again, err := json.Marshal(table)
		if err != nil {
			t.Fatal(err)
		}
		var back limit.Table
		if err := json.Unmarshal(again, &back); err != nil || !equal(table, back) {
			t.Fatalf("%s was read as %+v, written as %s, and then read as %+v, %v", text, table, again, back, err)
		}
	})
}
