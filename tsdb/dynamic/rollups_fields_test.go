package dynamic_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// fieldMeasures are measures of any type of value: two fields, and if there is a function, a third measure.
func fieldMeasures[T any](of func(T) (float64, bool)) []rollup.Measure[T] {
	measures := []rollup.Measure[T]{
		{Name: "energy", Field: "kwh", Kind: window.Counter, Decimals: 3, Max: 1e9},
		{Name: "load", Field: "motor.load", Decimals: 2, Max: 1e6, Aggregates: window.Basic | window.Ends | window.StdDev | window.Integral | window.Quantiles},
	}
	if of != nil {
		measures = append(measures, rollup.Measure[T]{Name: "double", Of: of, Decimals: 1, Max: 1e6})
	}
	return measures
}

func fieldSchema[T any](c codec.Codec[T], of func(T) (float64, bool)) (*rollup.Rollup[T], *rollup.Rollup[T], *tsdb.Schema[T]) {
	hours := rollup.MustDefine("hours", window.Every(time.Hour), fieldMeasures(of), rollup.Options{})
	days := rollup.MustDefine("days", window.Days(1), fieldMeasures(of), rollup.Options{From: "hours"})
	return hours, days, tsdb.MustDefine("meters", tsdb.Key("site", "device"), c, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours, days}})
}

// motorState is the value of the program that reads. Some stored payloads are none.
type motorState struct {
	Kwh   float64 `json:"kwh"`
	Motor struct {
		Load float64 `json:"load"`
	} `json:"motor"`
}

var fieldPayloads = []string{
	`{"kwh":5}`, `{"kwh":7.5,"motor":{"load":1.25}}`, `{"kwh":"11.25"}`, `{"kwh":true}`, `{"kwh":null,"motor":{"load":-3}}`, `{}`, `{"kwh":1e1}`,
	`{"kwh":9007199254740993}`, `{"kwh":-3}`, `{"motor":{"load":2}}`, `{"motor.load":4}`, `{"kwh":[1]}`, `7`, `"text"`, `{"kwh":"none"}`,
	`{"kwh":0.0005}`, `{"kwh":1000000000.0004}`, `{"kwh":1000000001}`, `{"motor":null}`, `null`,
}

// TestFieldsAreComputedByTools: what a measure declared by a field has in a rollup is the same for the program that
// defines the rollup and for one that reads it by the catalogue, before a worker and after it, whatever the payloads
// are. It is also the same as in windows over the field. A measure that is a function is known only where it is stored.
func TestFieldsAreComputedByTools(t *testing.T) {
	testkit.Plain(t)
	t.Run("json", func(t *testing.T) {
		double := func(v motorState) (float64, bool) { return 2 * v.Kwh, v.Kwh != 0 }
		sameAsTools(t, codec.JSON[motorState](), codec.JSON[json.RawMessage](), nil, true)
		sameAsTools(t, codec.JSON[motorState](), codec.JSON[json.RawMessage](), double, true)
	})
	t.Run("json+zstd", func(t *testing.T) {
		sameAsTools(t, zstd.Wrap(codec.JSON[motorState](), zstd.Options{}), zstd.Wrap(codec.JSON[json.RawMessage](), zstd.Options{}), nil, false)
	})
	t.Run("converted", func(t *testing.T) {
		other := codec.Convert(codec.JSON[motorState](), func(v motorState) (string, error) { return fmt.Sprint(v.Kwh), nil }, func(string) (motorState, error) { return motorState{}, nil })
		sameAsTools(t, codec.Fallback(other, codec.Convert(codec.Records(), func(codec.Record) (string, error) { return "", nil }, nil)),
			codec.Fallback(codec.JSON[json.RawMessage](), codec.Convert(codec.Records(), func(codec.Record) (json.RawMessage, error) { return nil, nil }, nil)), nil, true)
	})
}

func sameAsTools[T any](t *testing.T, c codec.Codec[T], writes codec.Codec[json.RawMessage], of func(T) (float64, bool), damage bool) {
	t.Helper()
	hours, days, schema := fieldSchema(c, of)
	var never func(json.RawMessage) (float64, bool)
	if of != nil {
		never = func(json.RawMessage) (float64, bool) { return 0, false }
	}
	_, _, raw := fieldSchema(writes, never)
	random := rand.New(rand.NewPCG(1, 2))
	now := start.Add(100 * time.Hour)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, raw)
	put := func(n int) {
		t.Helper()
		for range n {
			at := start.Add(time.Duration(random.IntN(30*60)) * time.Minute)
			if err := raw.For(store, acme).Put(t.Context(), roof, at, json.RawMessage(fieldPayloads[random.IntN(len(fieldPayloads))])); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(300)
	if damage {
		view, err := dynamic.Open(t.Context(), store, acme, "meters")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			at := start.Add(time.Duration(i)*time.Hour + time.Second)
			if err := view.Put(t.Context(), dynamic.Point{Entity: roof, Time: at, Tag: "json", Class: "keep", Payload: []byte(`{"kwh":1`)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	compare := func(when string) (known, missing int) {
		t.Helper()
		rollups, tool, err := dynamic.Rollups(reading(t, store), dynamic.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*rollup.Rollup[T]{"hours": hours, "days": days} {
			var want []window.Bucket
			for b, err := range rollup.For(r, schema.For(store, acme)).Buckets(t.Context(), roof, tsdb.AllTime()) {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, b)
			}
			i, bad := 0, int64(0)
			for b, err := range rollup.For(rollups[name], tool.For(store, acme)).Buckets(t.Context(), roof, tsdb.AllTime()) {
				if err != nil || i >= len(want) {
					t.Fatalf("%s, %s: bucket %d of %d, %v", when, name, i, len(want), err)
				}
				w := want[i]
				i++
				bad += b.Bad
				if b.Start != w.Start || b.Points != w.Points || b.Bad != w.Bad {
					t.Errorf("%s, %s %v: %d points and %d bad, want %d and %d at %v", when, name, b.Start, b.Points, b.Bad, w.Points, w.Bad, w.Start)
				}
				for m := range b.Values {
					got, want := b.Values[m], w.Values[m]
					if got.Missing != 0 && m == 2 && b.Incomplete != nil {
						missing++
						continue
					}
					known++
					for a := window.Count; a <= window.Quantiles; a <<= 1 {
						if g, w := aggregateOf(&got, a), aggregateOf(&want, a); g != w || got.Missing != 0 {
							t.Errorf("%s, %s %v: %v of %s is %s, want %s", when, name, b.Start, a, got.Name, g, w)
						}
					}
				}
			}
			if i < len(want) || i == 0 || damage && bad == 0 {
				t.Errorf("%s, %s: %d buckets with %d bad points, want %d", when, name, i, bad, len(want))
			}
		}
		return known, missing
	}
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, schema)
	if err != nil {
		t.Fatal(err)
	}
	if _, missing := compare("before a worker"); (missing > 0) != (of != nil) {
		t.Errorf("before a worker, %d buckets lack the function", missing)
	}
	for range 2 {
		now = now.Add(time.Minute)
		if _, err := worker.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if known, missing := compare("stored"); missing > 0 || known < 60 {
		t.Errorf("stored, %d of %d summaries lack the function", missing, known+missing)
	}
	put(3)
	if _, missing := compare("after late points"); (missing > 0) != (of != nil) {
		t.Errorf("after late points, %d buckets lack the function", missing)
	}
	sameAsWindows(t, store, schema.For(store, acme), hours)
}

// sameAsWindows compares the rollup with windows over the field by package dynamic.
func sameAsWindows[T any](t *testing.T, store *tsdb.Store, repo *tsdb.Repository[T], hours *rollup.Rollup[T]) {
	t.Helper()
	field, err := dynamic.NewField("motor.load", dynamic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	loads, err := dynamic.Numbers(reading(t, store), field)
	if err != nil {
		t.Fatal(err)
	}
	by, err := window.New(window.Every(time.Hour), []window.Measure[codec.Value]{
		{Name: "load", Of: codec.Value.Number, Aggregates: window.Basic | window.Ends},
	}, window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[time.Time]window.Summary{}
	for b, err := range by.Read(t.Context(), loads.For(store, acme), roof, tsdb.AllTime()) {
		if err == nil && b.Values[0].Count > 0 {
			want[b.Start] = b.Values[0]
		}
	}
	n := 0
	for b, err := range rollup.For(hours, repo).Buckets(t.Context(), roof, tsdb.AllTime()) {
		if err != nil {
			t.Fatal(err)
		}
		got, w := b.Values[1], want[b.Start]
		if got.Count == 0 {
			continue
		}
		n++
		if got.Count != w.Count || got.Min != w.Min || got.Max != w.Max || got.Sum != w.Sum || got.Last != w.Last || !got.LastTime.Equal(w.LastTime) {
			t.Errorf("%v: the rollup has %+v, and windows over the field %+v", b.Start, got, w)
		}
	}
	if n != len(want) || n == 0 {
		t.Errorf("%d buckets of the rollup have a load, and %d windows", n, len(want))
	}
}

// TestFieldsThatCannotBeRead: a schema with payloads of which no field can be read is refused, and names the tag. A
// tool that does not decode a tag shows the measure as unknown.
func TestFieldsThatCannotBeRead(t *testing.T) {
	hours := rollup.MustDefine("hours", window.Every(time.Hour), fieldMeasures[string](nil), rollup.Options{})
	_, err := tsdb.Define("meters", tsdb.Key("site", "device"), codec.Fallback[string](codec.String(), upper{}), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours}})
	for _, part := range []string{`"upper"`, "measure energy", "rollup hours", "a function"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v; want an error with %q", err, part)
		}
	}
	_, _, schema := fieldSchema(codec.Tagged("mine", codec.JSON[motorState]()), nil) // this program knows what is in the tag
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
	if err := schema.For(store, acme).Put(t.Context(), roof, start, motorState{Kwh: 3}); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []dynamic.Options{{}, {Decoders: map[string]func([]byte) (any, error){"mine": func(p []byte) (v any, err error) {
		err = json.Unmarshal(p, &v)
		return v, err
	}}}} {
		rollups, tool, err := dynamic.Rollups(reading(t, store), opts)
		if err != nil {
			t.Fatal(err)
		}
		buckets := slices.Collect(func(yield func(window.Bucket) bool) {
			for b := range rollup.For(rollups["days"], tool.For(store, acme)).Buckets(t.Context(), roof, tsdb.AllTime()) {
				yield(b)
			}
		})
		known := opts.Decoders != nil
		if len(buckets) != 1 || (buckets[0].Incomplete == nil) != known || (buckets[0].Values[0].Last == 3) != known || (buckets[0].Points == 1) != known {
			t.Errorf("with decoders %v, the buckets are %+v", known, buckets)
		}
	}
}

// TestFieldsOfProtobuf: with dynamic.Fields, a measure can be a field of a protobuf message, and a tool that has the
// descriptors computes the same numbers. Without descriptors the bucket is incomplete.
func TestFieldsOfProtobuf(t *testing.T) {
	type field = *descriptorpb.FieldDescriptorProto // any message with an integer, an enum and a message
	proto := codec.Proto[field]()
	define := func(c codec.Codec[field]) (*rollup.Rollup[field], *tsdb.Schema[field], error) {
		hours := rollup.MustDefine("hours", window.Every(time.Hour), []rollup.Measure[field]{
			{Name: "number", Field: "number", Max: 1e6, Aggregates: window.Basic | window.Ends},
			{Name: "label", Field: "label", Max: 10},
			{Name: "packed", Field: "options.packed", Max: 1},
		}, rollup.Options{})
		schema, err := tsdb.Define("fields", tsdb.Key("site", "device"), c, tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hours}})
		return hours, schema, err
	}
	if _, _, err := define(proto); err == nil || !strings.Contains(err.Error(), `"pb"`) || !strings.Contains(err.Error(), "dynamic.Fields") {
		t.Errorf("fields of a codec that does not read them: %v", err)
	}
	if dynamic.Fields[field](nil) != nil {
		t.Error("a codec was made of none")
	}
	for _, c := range []codec.Codec[field]{
		dynamic.Fields(proto), zstd.Wrap(dynamic.Fields(proto), zstd.Options{}), dynamic.Fields(codec.Fallback(zstd.Wrap(dynamic.Fields(proto), zstd.Options{}), proto)),
	} {
		hours, schema, err := define(c)
		if err != nil {
			t.Fatal(err)
		}
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
		for i := range int32(4) {
			m := &descriptorpb.FieldDescriptorProto{Number: &i, Label: descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()}
			if i > 1 {
				packed := i == 2
				m.Options = &descriptorpb.FieldOptions{Packed: &packed}
			}
			if err := schema.For(store, acme).Put(t.Context(), roof, start.Add(time.Duration(i)*time.Minute), m); err != nil {
				t.Fatal(err)
			}
		}
		want, err := rollup.For(hours, schema.For(store, acme)).Total(t.Context(), roof, tsdb.AllTime())
		if v := want.Values; err != nil || v[0].Sum != 6 || v[0].Last != 3 || v[1].Mean != 3 || v[2].Count != 2 || v[2].Sum != 1 {
			t.Errorf("%s: %+v, %v", c.Tag(), v, err)
		}
		for known, opts := range map[bool]dynamic.Options{false: {}, true: {
			Descriptors: &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(descriptorpb.File_google_protobuf_descriptor_proto)}},
			Messages:    map[string]string{"pb": "google.protobuf.FieldDescriptorProto"},
		}} {
			rollups, tool, err := dynamic.Rollups(reading(t, store), opts)
			if err != nil {
				t.Fatal(err)
			}
			got, err := rollup.For(rollups["hours"], tool.For(store, acme)).Total(t.Context(), roof, tsdb.AllTime())
			if err != nil || (got.Incomplete == nil) != known || known && shown([]window.Bucket{got}) != shown([]window.Bucket{want}) {
				t.Errorf("%s: a tool with descriptors %v has %+v, %v, want %+v", c.Tag(), known, got, err, want)
			}
		}
	}
}

// upper is a codec of another format.
type upper struct{}

func (upper) Tag() string { return "upper" }
func (upper) Append(dst []byte, v string) ([]byte, error) {
	return append(dst, strings.ToUpper(v)...), nil
}
func (upper) Decode(src []byte) (string, error) { return strings.ToLower(string(src)), nil }
