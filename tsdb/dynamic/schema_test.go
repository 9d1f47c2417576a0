package dynamic_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/codec/zstd"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
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

// read stores values with a codec, and reads them by the catalogue. It returns the fields, and the numbers of one,
// oldest first.
func read[T any](t *testing.T, c codec.Codec[T], opts dynamic.Options, name string, values ...T) (all []codec.Record, numbers []codec.Value) {
	t.Helper()
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), c, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	for i, v := range values {
		if err := s.For(store, acme).Put(t.Context(), roof, start.Add(time.Duration(i)*time.Minute), v); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := dynamic.Schema(reading(t, store), opts)
	if err != nil {
		t.Fatal(err)
	}
	for p, err := range whole.For(store, acme).Range(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Value)
	}
	field, err := dynamic.NewField(name, opts)
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
	same := func(name string, all []codec.Record, numbers []codec.Value, want []codec.Record, wantNumbers ...codec.Value) {
		t.Helper()
		if !slices.EqualFunc(all, want, codec.Record.Equal) {
			t.Errorf("%s: fields %v, want %v", name, all, want)
		}
		if !slices.Equal(numbers, wantNumbers) {
			t.Errorf("%s: numbers %v, want %v", name, numbers, wantNumbers)
		}
	}
	none := codec.Value{}
	single := func(values ...any) (all []codec.Record) {
		for _, v := range values {
			all = append(all, codec.NewRecord(codec.Field{Value: codec.ValueOf(v)}))
		}
		return all
	}

	all, numbers := read(t, codec.Float64(), dynamic.Options{}, "", 1.5, math.Inf(-1))
	same("f64", all, numbers, single(1.5, math.Inf(-1)), codec.Float(1.5), codec.Float(math.Inf(-1)))
	all, numbers = read(t, codec.Int64(), dynamic.Options{}, "", -7, math.MaxInt64)
	same("i64", all, numbers, single(-7, math.MaxInt64), codec.Int(-7), codec.Int(math.MaxInt64))
	all, numbers = read(t, codec.String(), dynamic.Options{}, "", "7", "seven")
	same("str", all, numbers, single("7", "seven"), codec.Int(7), none)
	all, numbers = read(t, codec.Bytes(), dynamic.Options{}, "a", []byte{0, 1})
	same("raw", all, numbers, single([]byte{0, 1}), none)

	record := recordOf(map[string]codec.Value{"a": codec.Int(-1), "b": codec.Uint(2), "motor.temp_c": codec.Float(3.5), "d": codec.Str("x"), "e": codec.Bool(true)})
	all, numbers = read(t, codec.Records(), dynamic.Options{}, "motor.temp_c", record, codec.Record{})
	same("rec", all, numbers, []codec.Record{record, {}}, codec.Float(3.5), none)

	values := []any{
		map[string]any{"motor": map[string]any{"temp_c": 81.5, "on": true}, "n": []any{1.0, 2.5, nil, "x"}, "none": nil}, uint64(math.MaxUint64), int64(math.MinInt64), 1e300, "text", true, nil,
	}
	fields := recordOf(map[string]codec.Value{
		"motor.temp_c": codec.Float(81.5), "motor.on": codec.Bool(true), "n": codec.ValueOf([]any{1, 2.5, nil, "x"}), "none": codec.ValueOf(nil),
	})
	want := append([]codec.Record{fields}, single(values[1:]...)...)
	for name, c := range map[string]codec.Codec[any]{"json": codec.JSON[any](), "json+zstd": zstd.Wrap(codec.JSON[any](), zstd.Options{})} {
		all, numbers = read(t, c, dynamic.Options{}, "motor.temp_c", values...)
		same(name, all, numbers, want, codec.Float(81.5), none, none, none, none, none, none)
	}
	all, numbers = read(t, codec.Tagged("json.v2", codec.JSON[any]()), dynamic.Options{Decoders: map[string]func([]byte) (any, error){"json.v2": codec.JSON[any]().Decode}}, "motor.on", values[0])
	same("json.v2", all, numbers, []codec.Record{fields}, codec.Int(1))
}

// TestUnknownTags: a dataset that cannot be read says which tags are the reason, and a point of a tag that came later
// says so, too.
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
		_, ferr := dynamic.NewField("", opts)
		if err == nil || !strings.Contains(err.Error(), name) || ferr == nil || ferr.Error() != err.Error() {
			t.Errorf("%s: errors %v and %v", name, err, ferr)
		}
	}
	for _, d := range []tsdb.Dataset{nil, new(tsdb.Schema[int])} {
		if _, err := dynamic.Schema(d, dynamic.Options{}); !errors.Is(err, tsdb.ErrInvalid) {
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
		if err := s.For(store, acme).Put(t.Context(), roof, start, recordOf(map[string]codec.Value{"a": codec.Int(1)})); err != nil {
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
		ctx, v := t.Context(), recordOf(map[string]codec.Value{"a": codec.Int(2)})
		for call, f := range map[string]func() error{
			"Put":         func() error { return repo.Put(ctx, roof, start, v) },
			"PutIfAbsent": func() error { _, err := repo.PutIfAbsent(ctx, roof, start, v); return err },
			"PutMany": func() error {
				_, err := repo.PutMany(ctx, []tsdb.Point[codec.Record]{{Entity: roof, Time: start, Value: v}})
				return err
			},
			"Enqueue":     func() error { return repo.Via(writer).Enqueue(ctx, roof, start, v) },
			"TryEnqueue":  func() error { return repo.Via(writer).TryEnqueue(ctx, roof, start, v) },
			"EnqueueFunc": func() error { return repo.Via(writer).EnqueueFunc(ctx, roof, start, v, func(tsdb.Outcome) {}) },
			"EnqueueMany": func() error {
				_, err := repo.Via(writer).EnqueueMany(ctx, []tsdb.Point[codec.Record]{{Entity: roof, Time: start, Value: v}})
				return err
			},
			"Delete":             func() error { return repo.Delete(ctx, roof, start) },
			"DeleteRange":        func() error { _, err := repo.DeleteRange(ctx, roof, tsdb.AllTime()); return err },
			"DeleteRange of all": func() error { _, err := repo.DeleteRange(ctx, roof, tsdb.AllTime()); return err },
			"DeletePrefix":       func() error { _, err := repo.DeletePrefix(ctx, tsdb.AllEntities()); return err },
		} {
			if err := f(); !errors.Is(err, codecerr.ErrReadOnly) {
				t.Errorf("%s, %s: %v, want ErrReadOnly", name, call, err)
			}
		}
		if n := conn.Counts().Calls[tsdbtest.MutateRow] + conn.Counts().Calls[tsdbtest.MutateRows] + conn.Counts().Calls[tsdbtest.CheckAndMutateRow]; n > 0 {
			t.Errorf("%s: %d requests that write", name, n)
		}
		if err := writer.Close(ctx); err != nil {
			t.Error(err)
		}
		if p, err := repo.Latest(ctx, roof); err != nil || !p.Value.Equal(recordOf(map[string]codec.Value{"a": codec.Int(1)})) {
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
	for p, err := range schema.For(store, acme).Under(tsdb.AllEntities()).Range(t.Context(), tsdb.AllTime()) {
		if n++; err != nil || p.Value != codec.Float(1) {
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
	field, err := dynamic.NewField("temp_c", dynamic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := dynamic.Numbers(reading(t, store), field)
	if err != nil {
		t.Fatal(err)
	}
	hours, err := window.New(window.Every(time.Hour), []window.Measure[codec.Value]{{Name: "temp_c", Of: codec.Value.Number}}, window.Options{})
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
	f, err := dynamic.NewField("", dynamic.Options{Decoders: decoders})
	if err != nil {
		t.Fatal(err)
	}
	none, err := dynamic.NewField("none", dynamic.Options{Decoders: map[string]func([]byte) (any, error){"own": decoders["own"]}})
	if err != nil {
		t.Fatal(err)
	}
	delete(decoders, "own")
	if v, err := f.Number("own", nil); v != codec.Float(7) || err != nil {
		t.Errorf("%v, %v; want 7", v, err)
	}
	if v, err := none.Number("own", nil); v != (codec.Value{}) || err != nil {
		t.Errorf("a field that is not there: %v, %v; want none", v, err)
	}
}

// FuzzFieldIsAsDecoded: of each format, one field read alone is what a look-up in all fields returns.
func FuzzFieldIsAsDecoded(f *testing.F) {
	record, err := codec.Append(codec.Records(), nil, recordOf(map[string]codec.Value{"a": codec.Int(9007199254740993), "a.b": codec.Str("7"), "c": codec.Bool(true)}))
	if err != nil {
		f.Fatal(err)
	}
	for _, src := range [][]byte{
		record, []byte(`{"a":{"b":{"c":1}},"a.b":{"c":"2"},"a.b.c":null,"":{"":[1,{"x":2.50}]}}`), []byte(`{"a":100000000000000000000,"b":"\u00e4"}`), []byte("12345678"), []byte(`"7"`), []byte(`{"a":1,"a":{"b":1e999}}`),
		[]byte(strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)),
	} {
		for _, name := range []string{"", "a", "a.b", "a.b.c", ".", "b", "c", strings.Repeat("a.", 15) + "a", strings.Repeat("a.", 16) + "a"} {
			f.Add(src, name)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, name string) {
		field, err := dynamic.NewField(name, dynamic.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, plain := range []string{"f64", "i64", "str", "raw", "json", "rec"} {
			zipped, err := zstd.Wrap(codec.Bytes(), zstd.Options{}).Append(nil, src)
			if err != nil {
				t.Fatal(err)
			}
			for tag, payload := range map[string][]byte{plain: src, plain + "+zstd": zipped} {
				sameAsDecoded(t, name, field, tag, payload, dynamic.Options{})
			}
		}
	})
}

func decode(tag string, payload []byte, opts dynamic.Options) (codec.Record, error) {
	d, err := dynamic.NewDecoder(opts)
	if err != nil {
		return codec.Record{}, err
	}
	return d.Decode(tag, payload)
}

// sameAsDecoded compares a field that is read alone with that of the decoded payload, if that decodes, and the fields
// of the decoded payload with each read alone.
func sameAsDecoded(t *testing.T, name string, field dynamic.Field, tag string, payload []byte, opts dynamic.Options) {
	t.Helper()
	all, err := decode(tag, payload, opts)
	v, oneErr := field.Value(tag, payload)
	if err != nil {
		if !errors.Is(err, codec.ErrCorrupt) || oneErr != nil && !errors.Is(oneErr, codec.ErrCorrupt) {
			t.Errorf("%s: %v and %v, want ErrCorrupt", tag, err, oneErr)
		}
		return
	}
	want, _ := all.Lookup(name)
	if tooDeep := strings.Count(name, ".") > 15; oneErr != nil || v != want && !tooDeep {
		t.Errorf("%s: field %q of %q is %v, %v; decoded it is %v", tag, name, payload, v, oneErr, want)
	}
	if n, err := field.Number(tag, payload); err != nil || n != v.AsNumber() {
		t.Errorf("%s: number %q of %q is %v, %v; want %v", tag, name, payload, n, err, v.AsNumber())
	}
	for name, want := range all.All() {
		if v, err := fieldNamed(t, name, opts).Value(tag, payload); err != nil || v != want {
			t.Errorf("%s: field %q of %q is %v, %v; decoded it is %v", tag, name, payload, v, err, want)
		}
	}
}

func fieldNamed(t testing.TB, name string, opts dynamic.Options) dynamic.Field {
	t.Helper()
	f, err := dynamic.NewField(name, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// recordOf returns a record with the map's names and values.
func recordOf(values map[string]codec.Value) codec.Record {
	fields := make([]codec.Field, 0, len(values))
	for name, v := range values {
		fields = append(fields, codec.Field{Name: name, Value: v})
	}
	return codec.NewRecord(fields...)
}
