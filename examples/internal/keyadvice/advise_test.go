package keyadvice_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/keyadvice"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

func sampled(tenantID string, rate float64, payload int, parts ...string) keyadvice.SampledEntity {
	return keyadvice.SampledEntity{Tenant: tenant.MustParse(tenantID), Entity: tsdb.NewEntity(parts...), Rate: rate, Payload: payload}
}

func TestKeysRefuses(t *testing.T) {
	d := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	good := sampled("acme", 1, 8, "berlin", "roof-7")
	with := func(change func(*keyadvice.SampledEntity)) keyadvice.Sample {
		bad := good
		change(&bad)
		return keyadvice.Sample{Entities: []keyadvice.SampledEntity{good, bad}}
	}
	for _, tt := range []struct {
		name   string
		d      tsdb.Dataset
		sample keyadvice.Sample
		want   string
	}{
		{"no dataset", nil, keyadvice.Sample{}, "dataset is the zero value"},
		{"a zero schema", &tsdb.Schema[float64]{}, keyadvice.Sample{}, "dataset is the zero value"},
		{"a nil schema", (*tsdb.Schema[float64])(nil), keyadvice.Sample{}, "dataset is the zero value"},
		{"a zero schema beside", d, keyadvice.Sample{OtherDatasets: []tsdb.Dataset{d, nil}}, "OtherDatasets 1: tsdb: invalid input: dataset is the zero value"},
		{"share below 0", d, keyadvice.Sample{Share: -0.1}, "Share is -0.1"},
		{"share above 1", d, keyadvice.Sample{Share: 1.5}, "Share is 1.5"},
		{"no share", d, keyadvice.Sample{Share: math.NaN()}, "Share is NaN"},
		{"too many", d, keyadvice.Sample{Entities: make([]keyadvice.SampledEntity, 100_001)}, "Entities is 100001; want at most 100000"},
		{"no tenant", d, with(func(s *keyadvice.SampledEntity) { s.Tenant = tenant.ID{} }), "entity 1 of the sample: tsdb: invalid input: tenant is empty"},
		{"no entity", d, with(func(s *keyadvice.SampledEntity) { s.Entity = tsdb.Entity{} }), "entity 1 of the sample"},
		{"one part", d, with(func(s *keyadvice.SampledEntity) { s.Entity = tsdb.NewEntity("berlin") }), "want exactly 2"},
		{"one long part", d, with(func(s *keyadvice.SampledEntity) { s.Entity = tsdb.NewEntity(strings.Repeat("b", 5000)) }), "want exactly 2"},
		{"an empty part", d, with(func(s *keyadvice.SampledEntity) { s.Entity = tsdb.NewEntity("berlin", "") }), "key field device is empty"},
		{"no text", d, with(func(s *keyadvice.SampledEntity) { s.Entity = tsdb.NewEntity("berlin", "\xff") }), "want valid UTF-8"},
		{"a rate below 0", d, with(func(s *keyadvice.SampledEntity) { s.Rate = -1 }), "Rate is -1"},
		{"no rate", d, with(func(s *keyadvice.SampledEntity) { s.Rate = math.NaN() }), "Rate is NaN"},
		{"an endless rate", d, with(func(s *keyadvice.SampledEntity) { s.Rate = math.Inf(1) }), "Rate is +Inf"},
		{"a payload below 0", d, with(func(s *keyadvice.SampledEntity) { s.Payload = -1 }), "Payload is -1"},
		{"none that is good", d, keyadvice.Sample{Entities: make([]keyadvice.SampledEntity, 100)}, "and more"},
	} {
		got, err := keyadvice.Advise(tt.d, tt.sample)
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), tt.want) || got != nil {
			t.Errorf("%s: %v, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

// TestKeysKnowsTheSchema: the advice on the same sample depends on the schema.
func TestKeysKnowsTheSchema(t *testing.T) {
	var many keyadvice.Sample
	for i := range 1000 {
		many.Entities = append(many.Entities, sampled("acme", 30, 500, "berlin", fmt.Sprintf("roof-%d", i)))
	}
	long := keyadvice.Sample{Entities: []keyadvice.SampledEntity{sampled("acme", 1, 8, strings.Repeat("berlin", 700), "x")}}
	key := tsdb.Key("site", "device")
	opts := tsdb.SchemaOptions{Precision: tsdb.Milliseconds}
	salted, heads, only, merge := opts, opts, opts, opts
	salted.Salts = 6
	heads.Head.Points = 10
	only.Head = tsdb.Head{Points: 100, Only: true}
	merge.Merge = true
	large := keyadvice.Sample{Entities: []keyadvice.SampledEntity{sampled("acme", 1, 6000, "berlin", "x"), sampled("acme", 1, 80_000, "berlin", "y")}}
	older := opts
	for i := range 60 {
		older.FormerClasses = append(older.FormerClasses, gc.Class{Name: fmt.Sprintf("y%d", i), Policy: gc.MaxAge(time.Duration(i+1) * 24 * time.Hour)})
	}
	beside := tsdb.MustDefine("beside", key, codec.Float64(), older)
	for _, tt := range []struct {
		name   string
		opts   tsdb.SchemaOptions
		sample keyadvice.Sample
		want   string
	}{
		{"a busy tenant", opts, many, "warning few-first-values, info busy-tenant"},
		{"the same with salts", salted, many, ""},
		{"the same with heads", heads, many, "critical hot-head, warning few-first-values, info busy-tenant"},
		{"a long key", opts, long, "critical long-key"},
		{"points of any size", opts, large, ""},
		{"payloads that are merged", merge, large, "critical large-payload"},
		{"payloads of a long head", only, large, "warning large-payload"},
		{"no entities", opts, keyadvice.Sample{}, ""},
		{"families of another dataset", opts, keyadvice.Sample{OtherDatasets: []tsdb.Dataset{beside, beside}}, "warning many-families"},
	} {
		var got []string
		codecOf := func() (tsdb.Dataset, error) {
			if tt.opts.Merge {
				return tsdb.Define("readings", key, codec.Records(), tt.opts)
			}
			return tsdb.Define("readings", key, codec.Float64(), tt.opts)
		}
		d, err := codecOf()
		if err != nil {
			t.Fatal(err)
		}
		advice, err := keyadvice.Advise(d, tt.sample)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range advice {
			got = append(got, a.Severity+" "+a.Cause)
		}
		if text := strings.Join(got, ", "); text != tt.want || advice == nil {
			t.Errorf("%s: %q, want %q\n%v", tt.name, text, tt.want, advice)
		}
	}
}

// TestAdviseInJSON: programs in other languages rely on these names.
func TestAdviseInJSON(t *testing.T) {
	got, err := json.Marshal(keyadvice.Advice{Cause: "hot-entity", Severity: "critical", Found: "f", Why: "w", Remedy: "r"})
	if want := `{"cause":"hot-entity","severity":"critical","found":"f","why":"w","remedy":"r"}`; string(got) != want || err != nil {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// FuzzKeys: no sample causes a panic, and errors name the invalid field.
func FuzzKeys(f *testing.F) {
	f.Add("acme", "berlin", "roof-7", 1.0, 8, 0.5, uint8(9))
	f.Add("a", "2026-01-01", "", -1.0, -8, 2.0, uint8(200))
	f.Add("415-555-0132", "\xff", "anna@example.com", math.Inf(1), math.MaxInt, math.NaN(), uint8(0))
	d := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	f.Fuzz(func(t *testing.T, id, site, device string, rate float64, payload int, share float64, n uint8) {
		tid, _ := tenant.Parse(id)
		s := keyadvice.Sample{Share: share, Arrival: n%2 == 0}
		for i := range n {
			name := device
			if i%3 == 1 {
				name += fmt.Sprint(i)
			}
			s.Entities = append(s.Entities, keyadvice.SampledEntity{Tenant: tid, Entity: tsdb.NewEntity(site, name), Rate: rate * float64(i), Payload: payload})
		}
		advice, err := keyadvice.Advise(d, s)
		if err != nil && !errors.Is(err, tsdb.ErrInvalid) {
			t.Fatalf("error %v", err)
		}
		for _, a := range advice {
			if a.Cause == "" || a.Found == "" || strings.Contains(fmt.Sprint(a), "%!") || strings.Contains(fmt.Sprint(a), "NaN") {
				t.Fatalf("%v", a)
			}
		}
	})
}
