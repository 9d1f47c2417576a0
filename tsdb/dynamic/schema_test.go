package dynamic_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/under"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var roof = tsdb.NewEntity("berlin", "roof-7")

// reading returns the catalogue's dataset of a store that has only one.
func reading(t testing.TB, store *tsdb.Store) (found tsdb.Dataset) {
	t.Helper()
	for d, err := range store.Datasets(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		found = d
	}
	return found
}

// read stores values with a codec, and reads them by the catalogue. It returns the values and the numbers of a field, oldest first.
func read[T any](t *testing.T, c codec.Codec[T], opts dynamic.Options, names []string, values ...T) (all []any, numbers []dynamic.Number) {
	t.Helper()
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), c, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	for i, v := range values {
		if err := s.For(store, acme).Put(t.Context(), roof, start.Add(time.Duration(i)*time.Minute), v); err != nil {
			t.Fatal(err)
		}
	}
	anySchema, err := dynamic.Schema(reading(t, store), opts)
	if err != nil {
		t.Fatal(err)
	}
	for p, err := range anySchema.For(store, acme).Range(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Value)
	}
	field, err := dynamic.NewField(names, opts)
	if err != nil {
		t.Fatal(err)
	}
	numberSchema, err := dynamic.Numbers(reading(t, store), field)
	if err != nil {
		t.Fatal(err)
	}
	for p, err := range numberSchema.For(store, acme).Range(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, p.Value)
	}
	return all, numbers
}

// TestSchemaReadsEachFormat: a program that was not compiled with a dataset reads what the one that was has written.
func TestSchemaReadsEachFormat(t *testing.T) {
	same := func(name string, all []any, numbers []dynamic.Number, want []any, wantNumbers []dynamic.Number) {
		t.Helper()
		if !reflect.DeepEqual(all, want) {
			t.Errorf("%s: values %#v, want %#v", name, all, want)
		}
		if fmt.Sprint(numbers) != fmt.Sprint(wantNumbers) {
			t.Errorf("%s: numbers %v, want %v", name, numbers, wantNumbers)
		}
	}
	is, none := func(x float64) dynamic.Number { return dynamic.Number{Value: x, OK: true} }, dynamic.Number{}

	all, numbers := read(t, codec.Float64(), dynamic.Options{}, nil, 1.5, math.Inf(-1))
	same("f64", all, numbers, []any{1.5, math.Inf(-1)}, []dynamic.Number{is(1.5), is(math.Inf(-1))})
	all, numbers = read(t, codec.Int64(), dynamic.Options{}, nil, -7, math.MaxInt64)
	same("i64", all, numbers, []any{int64(-7), int64(math.MaxInt64)}, []dynamic.Number{is(-7), is(math.MaxInt64)})
	all, numbers = read(t, codec.String(), dynamic.Options{}, nil, "7")
	same("str", all, numbers, []any{"7"}, []dynamic.Number{none})
	all, numbers = read(t, codec.Bytes(), dynamic.Options{}, []string{"a"}, []byte{0, 1})
	same("raw", all, numbers, []any{[]byte{0, 1}}, []dynamic.Number{none})

	record := codec.RecordOf(map[string]codec.Value{"a": codec.Int(-1), "b": codec.Uint(2), "motor.temp_c": codec.Float(3.5), "d": codec.Str("x"), "e": codec.Bool(true)})
	want := any(map[string]any{"a": int64(-1), "b": uint64(2), "motor.temp_c": 3.5, "d": "x", "e": true})
	all, numbers = read(t, codec.Records(), dynamic.Options{}, []string{"motor", "temp_c"}, record, codec.Record{})
	same("rec", all, numbers, []any{want, map[string]any{}}, []dynamic.Number{is(3.5), none})

	values := []any{
		map[string]any{"motor": map[string]any{"temp_c": 81.5, "on": true}, "n": []any{1.0, 2.5, nil, "x"}}, uint64(math.MaxUint64), int64(math.MinInt64), 1e300, "text", true, nil,
	}
	want = map[string]any{"motor": map[string]any{"temp_c": 81.5, "on": true}, "n": []any{int64(1), 2.5, nil, "x"}}
	wantAll := append([]any{want}, values[1:]...)
	wantNumbers := []dynamic.Number{is(81.5), none, none, none, none, none, none}
	for name, c := range map[string]codec.Codec[any]{"json": codec.JSON[any](), "json+zstd": zstd.Wrap(codec.JSON[any](), zstd.Options{})} {
		all, numbers = read(t, c, dynamic.Options{}, []string{"motor", "temp_c"}, values...)
		same(name, all, numbers, wantAll, wantNumbers)
	}
	all, numbers = read(t, codec.Tagged("json.v2", codec.JSON[any]()), dynamic.Options{Decoders: map[string]func([]byte) (any, error){"json.v2": codec.JSON[any]().Decode}}, []string{"motor", "on"}, values[0])
	same("json.v2", all, numbers, values[:1], []dynamic.Number{is(1)})
}

// TestUnknownTags: a dataset that cannot be read says which tags are the reason, and a point of a tag that came later says so, too.
func TestUnknownTags(t *testing.T) {
	old := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Tagged("json.v2", codec.JSON[any]()), tsdb.SchemaOptions{})
	pb := codec.Convert(codec.Tagged("pb+zstd", codec.Bytes()), func(b []byte) (any, error) { return b, nil }, nil)
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Fallback(codec.JSON[any](), codec.Tagged("json.v2", codec.JSON[any]()), pb), tsdb.SchemaOptions{})
	for _, f := range []func() error{
		func() error { _, err := dynamic.Schema(s, dynamic.Options{}); return err },
		func() error { _, err := dynamic.Numbers(s, dynamic.Field{}); return err },
	} {
		if err := f(); !errors.Is(err, codec.ErrUnknownTag) || !strings.Contains(err.Error(), `dataset "readings"`) || !strings.Contains(err.Error(), `"json.v2", "pb+zstd"`) {
			t.Errorf("error %v, want one that names the dataset and both tags", err)
		}
	}
	for name, opts := range map[string]dynamic.Options{
		"codec: invalid":      {Decoders: map[string]func([]byte) (any, error){"No Tag": nil}},
		"Messages":            {Messages: map[string]string{"?": "a"}},
		"Messages of tag pb":  {Messages: map[string]string{"pb": "acme.Reading"}},
		"Descriptors":         {Messages: map[string]string{"pb": "acme.Reading"}, Descriptors: brokenDescriptors()},
		"Descriptors.File[0]": {Messages: map[string]string{"pb": "acme.Reading"}, Descriptors: &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{nil}}},
	} {
		_, err := dynamic.Schema(s, opts)
		_, ferr := dynamic.NewField(nil, opts)
		if err == nil || !strings.Contains(err.Error(), name) || ferr == nil || ferr.Error() != err.Error() {
			t.Errorf("%s: errors %v and %v", name, err, ferr)
		}
	}
	for _, d := range []tsdb.Dataset{nil, new(tsdb.Schema[int])} {
		if _, err := dynamic.Schema(d, dynamic.Options{}); !errors.Is(err, dynamic.ErrInvalid) {
			t.Errorf("the schema of nothing: %v", err)
		}
	}

	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, old)
	readers, err := dynamic.Schema(reading(t, store), dynamic.Options{Decoders: map[string]func([]byte) (any, error){"json.v2": codec.JSON[any]().Decode}})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := s.For(store, acme).Put(t.Context(), roof, start, 1); err != nil {
		t.Fatal(err)
	}
	_, err = readers.For(store, acme).Latest(t.Context(), roof)
	if _, one := errors.AsType[*tsdb.PointError](err); !one || !errors.Is(err, codec.ErrUnknownTag) || !strings.Contains(err.Error(), `"json"`) {
		t.Errorf("a point of a tag that came later: %v, want a PointError that names it", err)
	}
}

// TestSchemaOnlyReads: no call on a schema of the catalogue changes what is stored.
func TestSchemaOnlyReads(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain": {}, "heads": {Head: tsdb.Head{Points: 3}, Precision: tsdb.Milliseconds}, "first wins": {FirstWins: true}, "merging": {Merge: true}, "only heads": {Head: tsdb.Head{Points: 3, Only: true}, Precision: tsdb.Milliseconds},
	} {
		s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Records(), opts)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		if err := s.For(store, acme).Put(t.Context(), roof, start, codec.RecordOf(map[string]codec.Value{"a": codec.Int(1)})); err != nil {
			t.Fatal(err)
		}
		schema, err := dynamic.Schema(reading(t, store), dynamic.Options{})
		if err != nil {
			t.Fatal(err)
		}
		repo := schema.For(store, acme)
		writer, err := store.NewWriter(tsdb.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conn.Reset()
		ctx, v := t.Context(), any(map[string]any{"a": int64(2)})
		for call, f := range map[string]func() error{
			"Put":         func() error { return repo.Put(ctx, roof, start, v) },
			"PutIfAbsent": func() error { _, err := repo.PutIfAbsent(ctx, roof, start, v); return err },
			"PutMany": func() error {
				_, err := repo.PutMany(ctx, []tsdb.Point[any]{{Entity: roof, Time: start, Value: v}})
				return err
			},
			"Enqueue":     func() error { return repo.Via(writer).Enqueue(ctx, roof, start, v) },
			"TryEnqueue":  func() error { return repo.Via(writer).TryEnqueue(ctx, roof, start, v) },
			"EnqueueFunc": func() error { return repo.Via(writer).EnqueueFunc(ctx, roof, start, v, func(tsdb.Outcome) {}) },
			"EnqueueMany": func() error {
				_, err := repo.Via(writer).EnqueueMany(ctx, []tsdb.Point[any]{{Entity: roof, Time: start, Value: v}})
				return err
			},
			"Delete":       func() error { return repo.Delete(ctx, roof, start) },
			"DeleteRange":  func() error { _, err := repo.DeleteRange(ctx, roof, tsdb.AllTime()); return err },
			"DeleteEntity": func() error { _, err := repo.DeleteEntity(ctx, roof); return err },
			"DeletePrefix": func() error { _, err := repo.DeletePrefix(ctx, tsdb.AllEntities()); return err },
		} {
			if err := f(); !errors.Is(err, codec.ErrReadOnly) {
				t.Errorf("%s, %s: %v, want ErrReadOnly", name, call, err)
			}
		}
		if n := conn.Counts().Calls[tsdbtest.MutateRow] + conn.Counts().Calls[tsdbtest.MutateRows] + conn.Counts().Calls[tsdbtest.CheckAndMutateRow]; n > 0 {
			t.Errorf("%s: %d requests that write", name, n)
		}
		if err := writer.Close(ctx); err != nil {
			t.Error(err)
		}
		if p, err := repo.Latest(ctx, roof); err != nil || !reflect.DeepEqual(p.Value, map[string]any{"a": int64(1)}) {
			t.Errorf("%s: the point is now %v, %v", name, p, err)
		}
	}
}

// TestSchemaKeepsTheWalls: a schema of the catalogue reads one tenant's points, and none of an erased tenant.
func TestSchemaKeepsTheWalls(t *testing.T) {
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	other := tenant.MustParse("acme2")
	if err := errors.Join(s.For(store, acme).Put(t.Context(), roof, start, 1), s.For(store, other).Put(t.Context(), roof, start, 2)); err != nil {
		t.Fatal(err)
	}
	schema, err := dynamic.Numbers(reading(t, store), dynamic.Field{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.For(store, acme).Latest(tenant.NewContext(t.Context(), other), roof); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("in the context of another tenant: %v, want ErrTenantMismatch", err)
	}
	n := 0
	for p, err := range under.Range(t.Context(), schema.For(store, acme), tsdb.AllEntities(), tsdb.AllTime()) {
		if n++; err != nil || p.Value.Value != 1 {
			t.Errorf("acme reads %v, %v", p, err)
		}
	}
	if n != 1 {
		t.Errorf("acme reads %d points, want 1", n)
	}
	if _, err := tenants.Erase(t.Context(), store, acme, tenants.EraseOptions{Settle: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.For(store, acme).Latest(t.Context(), roof); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("of an erased tenant: %v, want ErrErased", err)
	}
}

// TestNumbersInWindows: queries of package window take the numbers, and a damaged payload is one point's error.
func TestNumbersInWindows(t *testing.T) {
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Tagged("json", codec.Bytes()), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	for i, payload := range []string{`{"temp_c":20}`, `{"temp_c":22}`, `{}`, `{`} {
		if err := s.For(store, acme).Put(t.Context(), roof, start.Add(time.Duration(i)*time.Minute), []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	field, err := dynamic.NewField([]string{"temp_c"}, dynamic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := dynamic.Numbers(reading(t, store), field)
	if err != nil {
		t.Fatal(err)
	}
	hours, err := window.New(window.Every(time.Hour), []window.Measure[dynamic.Number]{{Name: field.String(), Of: dynamic.Number.Of}}, window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for b, err := range hours.Read(context.Background(), schema.For(store, acme), roof, tsdb.Between(start, start.Add(time.Hour)), tsdb.OldestFirst) {
		if _, one := errors.AsType[*tsdb.PointError](err); one && errors.Is(err, codec.ErrCorrupt) {
			damaged++
			continue
		}
		if err != nil || b.Values[0].Mean != 21 || b.Values[0].Count != 2 {
			t.Errorf("got %+v, %v; want a mean of 21 of 2 numbers", b, err)
		}
	}
	if damaged != 1 {
		t.Errorf("%d points are damaged, want 1", damaged)
	}
}

// TestOptionsAreCopied: a program may change its map of decoders while schemas that were made with it read.
func TestOptionsAreCopied(t *testing.T) {
	decoders := map[string]func([]byte) (any, error){"own": func([]byte) (any, error) { return 7.0, nil }}
	f, err := dynamic.NewField(nil, dynamic.Options{Decoders: decoders})
	if err != nil {
		t.Fatal(err)
	}
	none, err := dynamic.NewField([]string{"none"}, dynamic.Options{Decoders: map[string]func([]byte) (any, error){"own": decoders["own"]}})
	if err != nil {
		t.Fatal(err)
	}
	delete(decoders, "own")
	if x, ok, err := f.Number("own", nil); x != 7 || !ok || err != nil {
		t.Errorf("%v, %v, %v; want 7", x, ok, err)
	}
	if x, ok, err := none.Number("own", nil); x != 0 || ok || err != nil {
		t.Errorf("a field that is not there: %v, %v, %v; want 0 and false", x, ok, err)
	}
}
