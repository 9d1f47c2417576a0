package tsdb_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestLatestFieldsOfTypes compares, in random histories of structs and messages, each way to ask with a fold over the
// points of Range.
func TestLatestFieldsOfTypes(t *testing.T) {
	for seed := range uint64(6) {
		foldTypes(t, seed, codec.JSON[sparse](), randomSparse, 5)
		foldTypes(t, seed, codec.Proto[*descriptorpb.FieldDescriptorProto](), randomMessage, 11)
	}
}

// foldTypes is for a type with a number of fields.
func foldTypes[T any](t *testing.T, seed uint64, c codec.Codec[T], random func(*rand.Rand, int) T, all int) {
	rnd := rand.New(rand.NewPCG(seed, 12))
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), c, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	entities := []tsdb.Entity{device("a", 1), device("a", 2), device("b", 1)}
	for n := range 80 {
		at := start.Add(time.Duration(rnd.IntN(90)) * time.Second)
		if err := repo.Put(t.Context(), entities[rnd.IntN(2)], at, random(rnd, n)); err != nil {
			t.Fatal(err)
		}
	}
	for range 12 {
		options := tsdb.FieldOptions{MaxPoints: rnd.IntN(40)}
		if rnd.IntN(2) == 0 {
			options.AsOf = start.Add(time.Duration(rnd.IntN(90)) * time.Second)
		}
		many, err := repo.LatestFieldsMany(t.Context(), entities, options)
		if err != nil {
			t.Fatal(err)
		}
		below := map[tsdb.Entity]tsdb.Fields[T]{}
		for f, err := range repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), options) {
			if below[f.Entity] = f; err != nil {
				t.Fatal(err)
			}
		}
		for i, e := range entities {
			one, err := repo.LatestFields(t.Context(), e, options)
			if err != nil && !errors.Is(err, tsdb.ErrNotFound) {
				t.Fatal(err)
			}
			want, found := foldFields(t, repo, e, options, all)
			for what, f := range map[string]tsdb.Fields[T]{"one": one, "many": many[i], "below a prefix": below[e]} {
				if got := fieldsText(t, f); got != want || len(f.Missing) != all-found && f.Times.Len() > 0 {
					t.Fatalf("LatestFields of %v, %s, with %+v:\n%s, missing %v; want\n%s", e, what, options, got, f.Missing, want)
				}
			}
		}
	}
}

// fieldsText returns fields with their times, and how far they go, as text.
func fieldsText[T any](t *testing.T, f tsdb.Fields[T]) string {
	if f.Times.Len() == 0 {
		return "none"
	}
	return fmt.Sprint(fieldsOfValue(t, f.Value), maps.Collect(f.Times.All()), f.Back)
}

// foldFields returns the text of the fields from the points of Range, and their number.
func foldFields[T any](t *testing.T, repo *tsdb.Repository[T], e tsdb.Entity, options tsdb.FieldOptions, all int) (string, int) {
	in := tsdb.AllTime()
	if !options.AsOf.IsZero() {
		in = tsdb.Until(options.AsOf.Add(1))
	}
	values, times, seen, last, back := map[string]string{}, map[string]time.Time{}, 0, time.Time{}, time.Time{}
	for p, err := range repo.Range(t.Context(), e, in) {
		if err != nil {
			t.Fatal(err)
		}
		if len(values) == all {
			break
		}
		if seen > 0 && seen == options.MaxPoints {
			back = last
			break
		}
		seen, last = seen+1, p.Time
		for path, text := range fieldsOfValue(t, p.Value) {
			if _, known := values[path]; !known {
				values[path], times[fieldName(p.Value, path)] = text, p.Time
			}
		}
	}
	if len(values) == 0 {
		return "none", 0
	}
	return fmt.Sprint(values, times, back), len(values)
}

// fieldName returns the name of the field at a path.
func fieldName(v any, path string) string {
	m, ok := v.(proto.Message)
	if !ok {
		return strings.ReplaceAll(path, "#", ".")
	}
	n, _ := strconv.Atoi(path)
	return string(m.ProtoReflect().Descriptor().Fields().ByNumber(protoreflect.FieldNumber(n)).Name())
}

// TestLatestFieldsOfOtherTypes: a point with a field of another type does not decode. It gives no field, in each way to
// ask, also no field that would decode alone, and is reported with its key.
func TestLatestFieldsOfOtherTypes(t *testing.T) {
	type door struct {
		Open  *bool `json:"open,omitempty"`
		Count *int  `json:"count,omitempty"`
	}
	opts := tsdb.SchemaOptions{Identity: true}
	s := tsdb.MustDefine("doors", tsdb.Key("site", "device"), codec.JSON[door](), opts)
	loose := tsdb.MustDefine("doors", tsdb.Key("site", "device"), codec.JSON[map[string]any](), opts)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo, at := s.For(store, acme), start.Add(time.Second)
	if err := repo.WithID("good").Put(t.Context(), roof, start, door{new(true), new(1)}); err != nil {
		t.Fatal(err)
	}
	if err := loose.For(store, acme).WithID("bad").Put(t.Context(), roof, at, map[string]any{"open": "ajar", "count": 2}); err != nil {
		t.Fatal(err)
	}
	one, err := repo.LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if bad, ok := err.(tsdb.PointErrors); !ok || len(bad) != 1 {
		t.Errorf("the error is %v, want that of one point", err)
	}
	many, err := repo.LatestFieldsMany(t.Context(), []tsdb.Entity{roof}, tsdb.FieldOptions{})
	if _, ok := err.(*tsdb.ReadError); !ok {
		t.Fatalf("of many: %v", err)
	}
	found := map[string]tsdb.Fields[door]{"one": one, "many": many[0]}
	for f := range repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), tsdb.FieldOptions{}) {
		found["below a prefix"] = f
	}
	for what, f := range found {
		if fieldTimes(f, time.Second) != "count@0 open@0" || *f.Value.Count != 1 || !*f.Value.Open {
			t.Errorf("%s: %s, want the fields of the older point", what, fieldTimes(f, time.Second))
		}
		bad, ok := f.Err.(tsdb.PointErrors)
		if !ok || len(bad) != 1 || bad[0].Entity != roof || !bad[0].Time.Equal(at) || bad[0].ID != "bad" {
			t.Errorf("%s: the error is %v, want that of the newer point", what, f.Err)
		}
	}
	if len(found) != 3 {
		t.Error("nothing was found below the prefix")
	}
}

// TestLatestFieldsThatDoNotFit: fields of several points may make a value that their codec refuses. The answer has their
// times and the codec's error.
func TestLatestFieldsThatDoNotFit(t *testing.T) {
	type span struct {
		Low  *int `json:"low,omitempty"`
		High *int `json:"high,omitempty"`
	}
	refused := errors.New("low is above high")
	check := func(s span) (span, error) {
		if s.Low != nil && s.High != nil && *s.Low > *s.High {
			return span{}, refused
		}
		return s, nil
	}
	s := tsdb.MustDefine("spans", tsdb.Key("site", "device"), codec.Convert(codec.JSON[span](), check, check), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for i, v := range []span{{High: new(2)}, {Low: new(5)}} {
		if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), v); err != nil {
			t.Fatal(err)
		}
	}
	f, err := repo.LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	bad, ok := err.(tsdb.PointErrors)
	if !ok || len(bad) != 1 || bad[0].Entity != roof || !bad[0].Time.Equal(start.Add(time.Second)) || !errors.Is(err, refused) {
		t.Errorf("the error is %v, want that of the codec at the newest time", err)
	}
	if fieldTimes(f, time.Second) != "high@0 low@1" || f.Value != (span{}) {
		t.Errorf("%s with %+v, want both times and no value", fieldTimes(f, time.Second), f.Value)
	}
}

// TestLatestFieldsOfOtherMessages: fields of one message are not joined with those of another, which have other numbers.
func TestLatestFieldsOfOtherMessages(t *testing.T) {
	older := codec.Tagged("proto.v1", codec.Proto[*descriptorpb.EnumValueDescriptorProto]())
	forth := func(v *descriptorpb.EnumValueDescriptorProto) (*descriptorpb.FieldDescriptorProto, error) {
		return &descriptorpb.FieldDescriptorProto{JsonName: v.Name}, nil
	}
	now := codec.Fallback(codec.Proto[*descriptorpb.FieldDescriptorProto](), codec.Convert(older, forth, nil))
	s := tsdb.MustDefine("messages", tsdb.Key("site", "device"), now, tsdb.SchemaOptions{})
	former := tsdb.MustDefine("messages", tsdb.Key("site", "device"), older, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	if err := former.For(store, acme).Put(t.Context(), roof, start, &descriptorpb.EnumValueDescriptorProto{Name: new("a")}); err != nil {
		t.Fatal(err)
	}
	f, err := repo.LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if err != nil || f.Value.GetJsonName() != "a" || f.Times.Len() != 1 {
		t.Errorf("of the older message: %v, %v", f.Value, err)
	}
	at := start.Add(time.Second)
	if err := repo.Put(t.Context(), roof, at, &descriptorpb.FieldDescriptorProto{Number: new(int32(7))}); err != nil {
		t.Fatal(err)
	}
	f, err = repo.LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if err != nil || f.Value.GetNumber() != 7 || f.Value.Name != nil || f.Times.Len() != 1 || !f.Back.Equal(at) {
		t.Errorf("of the newer message: %v back to %v, %v", f.Value, f.Back, err)
	}
}

// TestLatestFieldsOfConverted: a conversion of compressed payloads keeps the fields of what was compressed.
func TestLatestFieldsOfConverted(t *testing.T) {
	type stored struct {
		Low  *int `json:"low,omitempty"`
		High *int `json:"high,omitempty"`
	}
	type shown struct{ Low, High int }
	forth := func(s stored) (v shown, err error) {
		if s.Low != nil {
			v.Low = *s.Low
		}
		if s.High != nil {
			v.High = *s.High
		}
		return v, nil
	}
	packed := zstd.Wrap(codec.JSON[stored](), zstd.Options{})
	write := tsdb.MustDefine("spans", tsdb.Key("site", "device"), packed, tsdb.SchemaOptions{})
	s := tsdb.MustDefine("spans", tsdb.Key("site", "device"), codec.Convert(packed, forth, func(v shown) (stored, error) {
		return stored{&v.Low, &v.High}, nil
	}), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	for i, v := range []stored{{High: new(2)}, {Low: new(5)}} {
		if err := write.For(store, acme).Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), v); err != nil {
			t.Fatal(err)
		}
	}
	f, err := s.For(store, acme).LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if err != nil || f.Value != (shown{5, 2}) || fieldTimes(f, time.Second) != "high@0 low@1" {
		t.Errorf("%+v, %s, %v", f.Value, fieldTimes(f, time.Second), err)
	}
}

// TestLatestFieldsDynamicProto: without the Go type, fields of messages have the same names and times.
func TestLatestFieldsDynamicProto(t *testing.T) {
	s := tsdb.MustDefine("messages", tsdb.Key("site", "device"), codec.Proto[*descriptorpb.FieldDescriptorProto](), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for i, v := range []*descriptorpb.FieldDescriptorProto{{Name: new("a"), Number: new(int32(1))}, {Number: new(int32(7))}} {
		if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), v); err != nil {
			t.Fatal(err)
		}
	}
	untyped := must[*tsdb.Schema[codec.Record]](t)(dynamic.Schema(s, dynamic.Options{
		Descriptors: &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
			protodesc.ToFileDescriptorProto(descriptorpb.File_google_protobuf_descriptor_proto),
		}},
		Messages: map[string]string{"pb": "google.protobuf.FieldDescriptorProto"},
	}))
	typed, err := repo.LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if err != nil || !strings.HasPrefix(fieldTimes(typed, time.Second), "name@0 number@1 missing ") {
		t.Fatalf("%s, %v", fieldTimes(typed, time.Second), err)
	}
	f, err := untyped.For(store, acme).LatestFields(t.Context(), roof, tsdb.FieldOptions{})
	if err != nil || fieldTimes(f, time.Second) != fieldTimes(typed, time.Second) {
		t.Errorf("%s, %v; want %s", fieldTimes(f, time.Second), err, fieldTimes(typed, time.Second))
	}
	name, _ := f.Value.Text("name")
	if number, _ := f.Value.Number("number"); name != "a" || number != 7 {
		t.Errorf("the value is %v", f.Value)
	}
}
