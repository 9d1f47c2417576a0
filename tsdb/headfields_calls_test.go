package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestFieldHeadsRefused: a schema whose heads could show a field that no point has is refused, with the reason.
func TestFieldHeadsRefused(t *testing.T) {
	ms := tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Fields: true}}
	with := func(change func(*tsdb.SchemaOptions)) tsdb.SchemaOptions {
		o := ms
		change(&o)
		return o
	}
	define := func(err error) string {
		if err == nil {
			return ""
		}
		if !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%v does not match ErrInvalid", err)
		}
		return err.Error()
	}
	js, rec := codec.JSON[sparse](), codec.Records()
	_, first := tsdb.Define("r", tsdb.Key("d"), js, with(func(o *tsdb.SchemaOptions) { o.FirstWins = true }))
	_, only := tsdb.Define("r", tsdb.Key("d"), js, with(func(o *tsdb.SchemaOptions) { o.Head.Points, o.Head.Only = 1, true }))
	_, id := tsdb.Define("r", tsdb.Key("d"), js, with(func(o *tsdb.SchemaOptions) { o.Identity = true }))
	_, ns := tsdb.Define("r", tsdb.Key("d"), js, with(func(o *tsdb.SchemaOptions) { o.Precision = tsdb.Nanoseconds }))
	_, tags := tsdb.Define("r", tsdb.Key("d"), codec.Fallback(codec.JSON[string](), codec.String()), ms)
	_, text := tsdb.Define("r", tsdb.Key("d"), codec.String(), ms)
	_, number := tsdb.Define("r", tsdb.Key("d"), codec.JSON[map[string]int](), ms)
	_, records := tsdb.Define("r", tsdb.Key("d"), rec, ms)
	_, empty := tsdb.Define("r", tsdb.Key("d"), codec.JSON[struct{}](), ms)
	_, merged := tsdb.Define("r", tsdb.Key("d"), rec, with(func(o *tsdb.SchemaOptions) { o.Merge = true }))
	_, plain := tsdb.Define("r", tsdb.Key("d"), js, ms)
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"FirstWins":      {first, "refused"},
		"Only":           {only, "Head.Only"},
		"Identity":       {id, "Identity"},
		"ns":             {ns, "Milliseconds"},
		"two tags":       {tags, "one tag"},
		"text":           {text, "codec of fields"},
		"a map":          {number, "fewer fields"},
		"records":        {records, "fewer fields"},
		"no fields":      {empty, ""},
		"merged records": {merged, ""},
		"a struct":       {plain, ""},
	} {
		got := define(c.err)
		if what == "no fields" {
			if got == "" {
				t.Error("a type without fields was accepted")
			}
			continue
		}
		if c.want == "" && got != "" || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want a reason with %q", what, got, c.want)
		}
	}
}

func fieldSchema(opts tsdb.SchemaOptions) *tsdb.Schema[sparse] {
	opts.Precision, opts.Head.Fields = tsdb.Milliseconds, true
	return tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[sparse](), opts)
}

func tempOf(f float64) (v sparse) {
	v.Temp = &f
	return v
}

func speedOf(n int) (v sparse) {
	v.Motor.Speed = &n
	return v
}

// TestLatestFieldsOfHeadsAlone: in a schema with Head.Only, a field behind the first points of a head is found, in each
// way to ask.
func TestLatestFieldsOfHeadsAlone(t *testing.T) {
	opts := tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 40, Only: true}}
	s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[sparse](), opts)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	points := []tsdb.Point[sparse]{{Entity: roof, Time: start, Value: tempOf(21)}}
	for i := range 39 {
		points = append(points, tsdb.Point[sparse]{Entity: roof, Time: start.Add(time.Duration(i+1) * time.Second), Value: sparse{Note: "on"}})
	}
	must[[]tsdb.Outcome](t)(repo.PutMany(t.Context(), points))
	options := tsdb.FieldOptions{MaxPoints: 40}
	one, err := repo.LatestFields(t.Context(), roof, options)
	if err != nil || one.Value.Temp == nil || *one.Value.Temp != 21 {
		t.Errorf("one: %+v, %v", one, err)
	}
	n := 0
	for f, err := range repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), options) {
		if n++; err != nil || fieldTimes(f, time.Second) != fieldTimes(one, time.Second) {
			t.Errorf("below a prefix: %s, %v; want %s", fieldTimes(f, time.Second), err, fieldTimes(one, time.Second))
		}
	}
	if n != 1 {
		t.Errorf("%d entities below the prefix, want 1", n)
	}
}

// TestHeadsAnswerNoTimeInThePast: a head has the newest fields only, so LatestFields with AsOf reads the points.
func TestHeadsAnswerNoTimeInThePast(t *testing.T) {
	s := fieldSchema(tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for i := range 3 {
		if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), tempOf(float64(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		options := tsdb.FieldOptions{AsOf: start.Add(time.Duration(i) * time.Second)}
		one, err := repo.LatestFields(t.Context(), roof, options)
		if err != nil {
			t.Fatal(err)
		}
		many, err := repo.LatestFieldsMany(t.Context(), []tsdb.Entity{roof}, options)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]tsdb.Fields[sparse]{"one": one, "many": many[0], "below a prefix": {}}
		for f, err := range repo.Under(tsdb.AllEntities()).LatestFields(t.Context(), options) {
			if found["below a prefix"] = f; err != nil {
				t.Fatal(err)
			}
		}
		for what, f := range found {
			if f.Value.Temp == nil || *f.Value.Temp != float64(i) || !f.Times.Newest().Equal(options.AsOf) {
				t.Errorf("%s as of %v: %+v of %v", what, options.AsOf, f.Value, f.Times.Newest())
			}
		}
	}
}

// TestDeletionRestoresNoDeletedField: a deletion finds the value before and copies it. Meanwhile other calls delete,
// replace or write the points.
func TestDeletionRestoresNoDeletedField(t *testing.T) {
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Minute) }
	type step func(ctx context.Context, r *tsdb.Repository[sparse]) error
	del := func(i int) step {
		return func(ctx context.Context, r *tsdb.Repository[sparse]) error { return r.Delete(ctx, roof, at(i)) }
	}
	put := func(i int, v sparse) step {
		return func(ctx context.Context, r *tsdb.Repository[sparse]) error { return r.Put(ctx, roof, at(i), v) }
	}
	for name, meanwhile := range map[string]step{
		"nothing":             nil,
		"deleted":             del(2),
		"replaced":            put(2, tempOf(20)),
		"replaced without it": put(2, speedOf(1)),
		"a newer one":         put(5, tempOf(5)),
		"a late one":          put(3, tempOf(3)),
		"deleted, then all of it": func(ctx context.Context, r *tsdb.Repository[sparse]) error {
			_, err := r.DeleteRange(ctx, roof, tsdb.AllTime())
			return err
		},
	} {
		for skip := 0; skip < 9; skip += testkit.Stride(2) {
			s := fieldSchema(tsdb.SchemaOptions{})
			d := &during{}
			store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: testkit.NewClock(at(19)).Now}, DialOptions: d.options()}, s)
			repo, ctx := s.For(store, acme), t.Context()
			for i := range 3 {
				if err := errors.Join(put(i, tempOf(float64(i)))(ctx, repo), put(i+10, speedOf(i))(ctx, repo)); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(put(4, tempOf(4))(ctx, repo), conn.Collect(ctx)); err != nil {
				t.Fatal(err)
			}
			if meanwhile != nil {
				d.arm(skip, func() error { return meanwhile(ctx, repo) })
			}
			if err := errors.Join(repo.Delete(ctx, roof, at(4)), errors.Join(d.errs...)); err != nil {
				t.Fatal(err)
			}
			if n := sameFields(t, fmt.Sprintf("%s after request %d", name, skip), repo, []tsdb.Entity{roof}); n == 0 && meanwhile == nil {
				t.Error("the head is not used after a deletion")
			}
		}
	}
}

// TestFieldIsReplacedAfterDeletion: a deletion finds the value before, and cells are collected meanwhile. The point of
// that value is then written again without the field: the value before it counts.
func TestFieldIsReplacedAfterDeletion(t *testing.T) {
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Minute) }
	for skip := range 9 {
		s := fieldSchema(tsdb.SchemaOptions{})
		d := &during{}
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: testkit.NewClock(at(19)).Now}, DialOptions: d.options()}, s)
		repo, ctx := s.For(store, acme), t.Context()
		put := func(i int, v sparse) error { return repo.Put(ctx, roof, at(i), v) }
		if err := errors.Join(put(1, tempOf(1)), put(2, tempOf(2)), put(3, tempOf(3)), conn.Collect(ctx)); err != nil {
			t.Fatal(err)
		}
		d.arm(skip, func() error { return conn.Collect(ctx) })
		err := repo.Delete(ctx, roof, at(3))
		d.arm(0, nil)
		if err := errors.Join(err, errors.Join(d.errs...), put(2, speedOf(2)), conn.Collect(ctx)); err != nil {
			t.Fatal(err)
		}
		sameFields(t, fmt.Sprint("after request ", skip), repo, []tsdb.Entity{roof})
	}
}

// TestDeletionShowsNoDeletedField: while a deletion copies the value before, another call deletes that value's point.
// From then on no head shows it, also if the first deletion ends here.
func TestDeletionShowsNoDeletedField(t *testing.T) {
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Minute) }
	for skip := range 9 {
		for later := range 4 {
			s := fieldSchema(tsdb.SchemaOptions{})
			d := &during{}
			store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: testkit.NewClock(at(19)).Now}, DialOptions: d.options()}, s)
			repo, ctx := s.For(store, acme), t.Context()
			for i := range 4 {
				if err := repo.Put(ctx, roof, at(i), tempOf(float64(i))); err != nil {
					t.Fatal(err)
				}
			}
			if err := conn.Collect(ctx); err != nil {
				t.Fatal(err)
			}
			d.arm(skip, func() error {
				err := repo.Delete(ctx, roof, at(2))
				d.arm(later, func() error {
					if f := fieldHeads(t, repo, []tsdb.Entity{roof})[0]["temp"]; f.at == at(2).UnixMilli() {
						t.Errorf("after request %d and %d more the head shows the deleted value %v", skip, later, f)
					}
					return nil
				})
				return err
			})
			if err := errors.Join(repo.Delete(ctx, roof, at(3)), errors.Join(d.errs...)); err != nil {
				t.Fatal(err)
			}
			d.arm(0, nil)
			sameFields(t, fmt.Sprintf("after request %d and %d more", skip, later), repo, []tsdb.Entity{roof})
		}
	}
}

// TestFieldsAfterDeletePrefix: points that are written while their prefix is deleted may lose the fields of their head.
// LatestFields still finds them, also once a newer point has other fields.
func TestFieldsAfterDeletePrefix(t *testing.T) {
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Minute) }
	for skip := range 9 {
		s := fieldSchema(tsdb.SchemaOptions{})
		d := &during{}
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: testkit.NewClock(at(19)).Now}, DialOptions: d.options()}, s)
		repo, ctx := s.For(store, acme), t.Context()
		put := func(i int, v sparse) error { return repo.Put(ctx, roof, at(i), v) }
		if err := errors.Join(put(1, tempOf(1)), put(2, speedOf(2))); err != nil {
			t.Fatal(err)
		}
		d.arm(skip, func() error { return errors.Join(put(6, tempOf(6)), put(7, tempOf(7))) })
		_, err := repo.DeletePrefix(ctx, tsdb.NewPrefix(roof.Parts()[0]))
		d.arm(0, nil)
		if err := errors.Join(err, errors.Join(d.errs...), put(8, speedOf(8))); err != nil {
			t.Fatal(err)
		}
		sameFields(t, fmt.Sprint("after request ", skip), repo, []tsdb.Entity{roof})
	}
}

// TestOneofInHead: of the fields of a oneof, the newest replaces the others, whatever their order in the head.
func TestOneofInHead(t *testing.T) {
	s := must[*tsdb.Schema[*structpb.Value]](t)(tsdb.Define("values", tsdb.Key("site", "device"), codec.Proto[*structpb.Value](),
		tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Fields: true}}))
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for i, v := range []*structpb.Value{structpb.NewNumberValue(1), structpb.NewBoolValue(true), structpb.NewStringValue("closed"), structpb.NewNumberValue(2), structpb.NewStringValue("open")} {
		if err := repo.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Second), v); err != nil {
			t.Fatal(err)
		}
	}
	for what, options := range map[string]tsdb.FieldOptions{"the head": {}, "points": {AsOf: start.Add(time.Hour)}} {
		f, err := repo.LatestFields(t.Context(), roof, options)
		if err != nil || f.Value.GetStringValue() != "open" || f.Times.Len() != 1 {
			t.Errorf("%s: %v with %d fields, %v; want open, alone", what, f.Value, f.Times.Len(), err)
		}
	}
}

// during runs a call before the n-th request of a later call, counted from 0.
type during struct {
	call func() error
	left atomic.Int64 // below 0 for nothing to do
	errs []error
}

func (d *during) arm(n int, call func() error) {
	d.call = call
	d.left.Store(int64(n))
}

func (d *during) request() {
	if d.left.Add(-1) == -1 && d.call != nil {
		d.errs = append(d.errs, d.call())
	}
}

func (d *during) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			d.request()
			return invoker(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			d.request()
			return streamer(ctx, desc, cc, method, opts...)
		}),
	}
}

// TestFieldBehindTheSearchIsUnknown: the value before a deleted one is behind the bound of the search. The head does
// not show the field as missing.
func TestFieldBehindTheSearchIsUnknown(t *testing.T) {
	s := fieldSchema(tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: testkit.NewClock(start.Add(time.Hour)).Now}}, s)
	repo, ctx := s.For(store, acme), t.Context()
	all := []tsdb.Point[sparse]{{Entity: roof, Time: start, Value: tempOf(1)}}
	for i := range 1000 {
		all = append(all, tsdb.Point[sparse]{Entity: roof, Time: start.Add(time.Duration(i+1) * time.Second), Value: speedOf(i)})
	}
	last := start.Add(time.Hour)
	all = append(all, tsdb.Point[sparse]{Entity: roof, Time: last, Value: tempOf(2)})
	if _, err := repo.PutMany(ctx, all); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Collect(ctx), repo.Delete(ctx, roof, last)); err != nil {
		t.Fatal(err)
	}
	if sameFields(t, "behind the search", repo, []tsdb.Entity{roof}) != 0 {
		t.Error("the head is used although it lacks a field")
	}
	if err := errors.Join(repo.Delete(ctx, roof, start.Add(time.Second)), repo.Delete(ctx, roof, last)); err != nil {
		t.Fatal(err)
	}
	if sameFields(t, "within the search", repo, []tsdb.Entity{roof}) != 1 {
		t.Error("a deletion that finds the value does not repair the head")
	}
}

// TestJournalBringsFieldsToHeads: a writer of a program without the schema delivers the points of a journal.
func TestJournalBringsFieldsToHeads(t *testing.T) {
	opts := tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Fields: true}}
	merge := opts
	merge.Merge = true
	name := "n"
	t.Run("json", func(t *testing.T) { fieldJournal(t, codec.JSON[sparse](), opts, tempOf(1), speedOf(2)) })
	t.Run("records", func(t *testing.T) {
		fieldJournal(t, codec.Records(), merge, codec.NewRecord(codec.Field{Name: "a", Value: codec.Int(1)}), codec.NewRecord(codec.Field{Name: "b", Value: codec.Str("x")}))
	})
	t.Run("protobuf", func(t *testing.T) {
		fieldJournal(t, codec.Proto[*descriptorpb.FieldDescriptorProto](), opts, &descriptorpb.FieldDescriptorProto{Name: &name}, &descriptorpb.FieldDescriptorProto{JsonName: &name})
	})
}

func fieldJournal[T any](t *testing.T, c codec.Codec[T], opts tsdb.SchemaOptions, values ...T) {
	bubble(t, func(t *testing.T) {
		s := tsdb.MustDefine("readings", tsdb.Key("site", "device"), c, opts)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout()}}}, s)
		journal := journaled(t)
		w := writer(t, store, journal)
		end := conn.Outage()
		for i, v := range values {
			if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, start.Add(time.Duration(i)*time.Second), v); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_ = w.Close(ctx)
		end()
		if err := writer(t, store, journal).Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		repo := tsdb.MustDefine("readings", tsdb.Key("site", "device"), c, opts).For(store, acme)
		if sameFields(t, "after the journal", repo, []tsdb.Entity{roof}) != 1 || len(fieldHeads(t, repo, []tsdb.Entity{roof})[0]) != len(values) {
			t.Error("the journal did not bring the fields to the head")
		}
	})
}

// TestFieldsGrow: a type gains and loses fields. Programs with both types write; a point that is written again without
// a field of the other type does not keep it in the head.
func TestFieldsGrow(t *testing.T) {
	type before struct {
		A *int `json:"a,omitempty"`
		B *int `json:"b,omitempty"`
	}
	type after struct {
		A *int `json:"a,omitempty"`
		C *int `json:"c,omitempty"`
	}
	one := 1
	opts := tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Fields: true}}
	old := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[before](), opts)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, old)
	grown := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[after](), opts)
	ctx := t.Context()
	if err := store.Verify(ctx, grown); err == nil || !strings.Contains(err.Error(), "field c of heads declared, but not stored") {
		t.Errorf("Verify before Ensure: %v", err)
	}
	if err := errors.Join(store.Ensure(ctx, grown), store.Verify(ctx, grown), store.Verify(ctx, old)); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(
		old.For(store, acme).Put(ctx, roof, start, before{B: &one}),
		grown.For(store, acme).Put(ctx, roof, start, after{A: &one}))
	if err != nil {
		t.Fatal(err)
	}
	if got := fieldHeads(t, old.For(store, acme), []tsdb.Entity{roof})[0]; len(got) != 1 && got != nil {
		t.Errorf("the head shows %v; the point has only a", got)
	}
	if d := dynamic.Describe(old); d.Head == nil || !d.Head.Fields {
		t.Errorf("Describe: %+v", d.Head)
	}
}

// TestStoredBytesOfFieldHeads is TestStoredBytes for heads with fields.
func TestStoredBytesOfFieldHeads(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 123456789, time.UTC)
	c := testkit.NewClock(noon.Add(time.Hour))
	js := fieldSchema(tsdb.SchemaOptions{Retention: d90, Head: tsdb.Head{Points: 1}})
	rec := tsdb.MustDefine("merged", tsdb.Key("device"), codec.Records(), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds, Merge: true, Head: tsdb.Head{Fields: true},
	})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, js, rec)
	ctx := t.Context()
	readings, merged := js.For(store, acme), rec.For(store, acme)
	field := func(name string, n int64) codec.Record {
		return codec.NewRecord(codec.Field{Name: name, Value: codec.Int(n)})
	}
	_, err := readings.PutMany(ctx, []tsdb.Point[sparse]{
		{Entity: roof, Time: noon, Value: tempOf(21.5)}, {Entity: roof, Time: noon.Add(time.Second), Value: speedOf(7)},
	})
	err = errors.Join(err,
		readings.Put(ctx, roof, noon.Add(time.Minute), tempOf(22)),
		readings.Delete(ctx, roof, noon.Add(time.Minute)),
		merged.Put(ctx, tsdb.NewEntity("a b"), noon, field("temp.of#x", 1)),
		merged.Put(ctx, tsdb.NewEntity("a b"), noon, field("n", -3)))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "testdata/headfields.golden", dump(t, table), breaksRows)
}

// TestDeletedFieldsLeaveNoRow: DeleteRange of everything leaves no row of a head behind.
func TestDeletedFieldsLeaveNoRow(t *testing.T) {
	s := fieldSchema(tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo, ctx := s.For(store, acme), t.Context()
	other := tsdb.NewEntity("berlin", "roof-77")
	for i := range 3 {
		if err := errors.Join(repo.Put(ctx, roof, start.Add(time.Duration(i)*time.Second), tempOf(1)), repo.Put(ctx, other, start, tempOf(7))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := repo.DeleteRange(ctx, roof, tsdb.AllTime()); err != nil {
		t.Fatal(err)
	}
	left := rows(t, table)
	if row, ok := left[headKey(roof)]; ok {
		t.Errorf("the head is still %v", row)
	}
	if _, ok := left[headKey(other)]; !ok {
		t.Error("the head of an entity with a longer name is gone")
	}
	if sameFields(t, "after the deletion of all points", repo, []tsdb.Entity{roof, other}) != 2 {
		t.Error("a head is not used after the deletion of all points")
	}
}
