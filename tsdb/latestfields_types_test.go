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
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
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
