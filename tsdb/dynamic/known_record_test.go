package dynamic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// Points that were written before there were lists get theirs by RecordFields, of every format, and again without harm.
func TestRecordFields(t *testing.T) {
	v := map[string]any{"temp": 21.5, "motor": map[string]any{"on": true}}
	r := codec.NewRecord(codec.Field{Name: "motor.on", Value: codec.Bool(true)}, codec.Field{Name: "temp", Value: codec.Float(21.5)})
	record(t, codec.JSON[map[string]any](), v)
	record(t, zstd.Wrap(codec.JSON[map[string]any](), zstd.Options{}), v)
	record(t, codec.Records(), r)
	record(t, zstd.Wrap(codec.Records(), zstd.Options{}), r)
}

func record[T any](t *testing.T, c codec.Codec[T], v T) {
	t.Helper()
	s, err := tsdb.Define("readings", tsdb.Key("site", "device"), c, tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opts := tsdb.StoreOptions{Clock: func() time.Time { return days(9) }}
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: opts}, s)
	for _, day := range []int{2, 5} {
		put(t, s.For(store, acme), days(day), v)
	}
	flushFields(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	row := bigtable.NewMutation()
	row.DeleteRow()
	if err := table.Apply(t.Context(), "acme#readings!fields#", row); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		one := other(t, conn, opts)
		if n, err := dynamic.RecordFields(t.Context(), one, acme, s, dynamic.Options{}, 0); n != 2 || err != nil {
			t.Fatalf("%s: recorded %d points, %v", c.Tag(), n, err)
		}
		_ = one.Close()
		wantKnown(t, other(t, conn, opts), acme, s, "motor.on bool 2-5", "temp float 2-5")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dynamic.RecordFields(ctx, other(t, conn, opts), acme, s, dynamic.Options{}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if _, err := dynamic.RecordFields(t.Context(), other(t, conn, opts), acme, s, dynamic.Options{}, 10); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("at 10 points a second: %v, want ErrInvalid", err)
	}
}

// The fields of a struct are those of its type, without a request. Programs that have only the catalogue get those that
// points have: from the list, unless the catalogue has the type's.
func TestFieldsOfType(t *testing.T) {
	typeListed(t, codec.JSON[sample](), sample{}, tsdb.Head{}, []string{"temp_c float"}, "temp_c float 3-6")
	typeListed(t, codec.JSON[sample](), sample{}, tsdb.Head{Fields: true}, []string{"temp_c float"}, "temp_c float")
	type motor struct {
		RPM float64 `json:"rpm"`
	}
	type some struct {
		Level *float64 `json:"level"`
		Fault string   `json:"fault,omitempty"`
		Motor motor    `json:"motor"`
		Spare *motor   `json:"spare,omitempty"`
	}
	typeListed(t, codec.JSON[some](), some{}, tsdb.Head{}, []string{"fault str", "level float", "motor.rpm float", "spare.rpm float"},
		"level null 3-6", "motor.rpm float 3-6")
	type open struct {
		On    *bool `json:"on,omitempty"`
		Motor any   `json:"motor"`
	}
	typeListed(t, codec.JSON[open](), open{}, tsdb.Head{}, []string{"motor ", "on bool"}, "motor null 3-6")
	typeListed(t, codec.Proto[*durationpb.Duration](), new(durationpb.Duration), tsdb.Head{}, []string{"nanos int", "seconds int"}, "nanos int 3-6", "seconds int 3-6")
	typeListed(t, zstd.Wrap(codec.JSON[sample](), zstd.Options{}), sample{}, tsdb.Head{}, []string{"temp_c float"}, "temp_c float 3-6")
	typeListed(t, codec.Tagged("v2", codec.JSON[sample]()), sample{}, tsdb.Head{}, []string{"temp_c float"}, "temp_c float 3-6")
}

func typeListed[T any](t *testing.T, c codec.Codec[T], v T, head tsdb.Head, declared []string, listed ...string) {
	t.Helper()
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), c, tsdb.SchemaOptions{Head: head, Precision: tsdb.Milliseconds})
	opts := tsdb.StoreOptions{Clock: func() time.Time { return days(30) }}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: opts}, s)
	for _, day := range []int{3, 6, 4} {
		put(t, s.For(store, acme), days(day), v)
	}
	flushFields(t, store)
	conn.Reset()
	put(t, s.For(store, acme), days(5), v)
	flushFields(t, store)
	wantKnown(t, store, acme, s, declared...)
	if c := conn.Counts(); c.Calls[tsdbtest.ReadRows] > 0 || c.Upkeep > 0 {
		t.Errorf("the list of a type took %+v, want no request", c)
	}
	one := other(t, conn, opts)
	for d, err := range one.Datasets(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		wantKnown(t, one, acme, d, listed...)
	}
}

// A payload that is one value is one field without a name, of the same kind by its schema and by the catalogue.
func TestFieldsOfSingleValues(t *testing.T) {
	s := tsdb.MustDefine("levels", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	wantKnown(t, store, acme, s, " float")
	for d, err := range store.Datasets(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		wantKnown(t, store, acme, d, " float")
	}
}

// An import lists the fields of the points that it writes, by their own days.
func TestImportListsFields(t *testing.T) {
	s := objects(t, tsdb.SchemaOptions{})
	opts := tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return days(30) }}}
	from, _ := tsdbtest.Open(t, opts, s)
	put(t, s.For(from, acme), days(3), object(t, `{"temp":1.5}`))
	put(t, s.For(from, acme), days(7), object(t, `{"temp":2.5,"on":true}`))
	var file bytes.Buffer
	if _, err := transfer.Export(t.Context(), from, acme, &file, transfer.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	to, conn := tsdbtest.Open(t, opts, s)
	if _, err := transfer.Import(t.Context(), to, tenant.MustParse("copy"), &file, transfer.ImportOptions{OtherTenant: true}); err != nil {
		t.Fatal(err)
	}
	flushFields(t, to)
	wantKnown(t, other(t, conn, opts.StoreOptions), tenant.MustParse("copy"), s, "on bool 7-7", "temp float 3-7")
}

// TestStoredFields compares a list byte for byte with a golden file.
func TestStoredFields(t *testing.T) {
	s := objects(t, tsdb.SchemaOptions{Retention: gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}})
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return at }}}, s)
	put(t, s.For(store, acme), at, object(t, `{"temp":21.5,"motor":{"on":true,"rpm":1200},"tags":[1],"note":null,"":18446744073709551615,"a:b":"x"}`))
	put(t, s.For(store, acme), at.AddDate(0, 0, -20), object(t, `{"temp":21}`))
	flushFields(t, store)
	put(t, s.For(store, acme), at.AddDate(0, 0, -25), map[string]any{"temp": 1.5, strings.Repeat("x", 256): 1})
	flushFields(t, store)
	row, err := table.ReadRow(t.Context(), "acme#readings!fields#")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, family := range slices.Sorted(maps.Keys(row)) {
		for _, item := range row[family] {
			fmt.Fprintf(&b, "%q %q %d %q\n", item.Row, item.Column, item.Timestamp, item.Value)
		}
	}
	testkit.Golden(t, "testdata/fields.golden", b.String(), "lists of fields that are stored today would no longer be read (see docs/format.md)")
}

// TestKindsOfSinglePayloads: the kinds of payloads that are one value are in order, and each is there once, whatever
// the order of the tags.
func TestKindsOfSinglePayloads(t *testing.T) {
	numbers := codec.Convert(codec.Float64(), func(v float64) (any, error) { return v, nil }, nil)
	texts := codec.Convert(codec.String(), func(v string) (any, error) { return v, nil }, nil)
	s := tsdb.MustDefine("values", tsdb.Key("device"), codec.Fallback(codec.JSON[any](), texts, numbers), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	for i, v := range []any{"warm", 1.5, true} {
		if err := s.For(store, acme).Put(t.Context(), tsdb.NewEntity("d"), start.Add(time.Duration(i)), v); err != nil {
			t.Fatal(err)
		}
	}
	list, err := dynamic.FieldsOf(t.Context(), store, acme, s)
	if want := []codec.Kind{codec.KindFloat, codec.KindStr, codec.KindBool}; err != nil || len(list.Fields) != 1 || !slices.Equal(list.Fields[0].Kinds, want) {
		t.Errorf("%+v, error %v; want kinds %v", list, err, want)
	}
}
