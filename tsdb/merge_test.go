package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	stored "github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// merging returns a schema of records whose writes merge.
func merging(t testing.TB, opts tsdb.SchemaOptions) *tsdb.Schema[codec.Record] {
	t.Helper()
	opts.Merge = true
	s, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.Records(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rec returns a record with one int field.
func rec(name string, v int64) codec.Record {
	return codec.NewRecord(codec.Field{Name: name, Value: codec.Int(v)})
}

// wantRecord compares the point of roof at a time with a record's text; "" means no point.
func wantRecord(t *testing.T, what string, r *tsdb.Repository[codec.Record], at time.Time, want string) {
	t.Helper()
	p, err := r.Get(context.Background(), roof, at)
	switch {
	case want == "" && !errors.Is(err, tsdb.ErrNotFound):
		t.Errorf("%s: %v, %v, want no point", what, p.Value, err)
	case want != "" && (err != nil || p.Value.String() != want):
		t.Errorf("%s: %v, %v, want %s", what, p.Value, err, want)
	}
}

func TestMergingWrites(t *testing.T) {
	s := merging(t, tsdb.SchemaOptions{Retention: d90})
	c := testkit.NewClock(start)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	r := s.For(store, acme)
	put := func(v codec.Record) {
		t.Helper()
		if err := r.Put(t.Context(), roof, start, v); err != nil {
			t.Fatal(err)
		}
	}
	put(rec("a", 1))
	put(rec("b", 2))
	put(rec("a", 3))
	wantRecord(t, "Put", r, start, "{a=3i b=2i}")
	conn.Reset()
	put(rec("b", 2))
	if n := conn.Counts().Calls[tsdbtest.CheckAndMutateRow]; n != 1 {
		t.Errorf("a write without new fields took %d conditional writes, want 1", n)
	}
	if stored, err := r.PutIfAbsent(t.Context(), roof, start, rec("c", 4)); stored || err != nil {
		t.Errorf("PutIfAbsent on an existing point = %v, %v; want false", stored, err)
	}
	wantRecord(t, "PutIfAbsent", r, start, "{a=3i b=2i}")
	outcomes, err := r.PutMany(t.Context(), []tsdb.Point[codec.Record]{
		{Entity: roof, Time: start, Value: rec("c", 1)},
		{Entity: roof, Time: start.Add(time.Second), Value: rec("x", 1)},
		{Entity: roof, Time: start, Value: rec("c", 2)},
		{Entity: roof, Time: start, Value: rec("d", 1)},
	})
	if err != nil || len(outcomes) != 4 {
		t.Errorf("PutMany: %v, %v", outcomes, err)
	}
	wantRecord(t, "PutMany", r, start, "{a=3i b=2i c=2i d=1i}")
	wantRecord(t, "PutMany", r, start.Add(time.Second), "{x=1i}")
	if err := r.Delete(t.Context(), roof, start); err != nil {
		t.Fatal(err)
	}
	put(rec("e", 1))
	wantRecord(t, "after Delete", r, start, "{e=1i}")
}

// TestMergingManyWriters: the fields of parallel writers are all stored in the end.
func TestMergingManyWriters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := merging(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		r := s.For(store, acme)
		conn.Inject(tsdbtest.Delay(time.Millisecond).On(tsdbtest.CheckAndMutateRow))
		conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Skip(7).Times(5))
		var writers sync.WaitGroup
		for n := range 16 {
			writers.Go(func() {
				for m := range 2 {
					if err := r.Put(t.Context(), roof, start, rec(fmt.Sprintf("f%02d.%d", n, m), int64(n))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
		p, err := r.Get(t.Context(), roof, start)
		if err != nil || p.Value.Len() != 32 {
			t.Errorf("got %v, %v; want 2 fields of each of 16 writers", p.Value, err)
		}
	})
}

// TestMergesReportWhatTheTableConfirms runs the fault matrix on a new row and on an existing one.
func TestMergesReportWhatTheTableConfirms(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, mergesUnderFaults)
}

func mergesUnderFaults(t *testing.T) {
	// A merge whose response was lost reads the row. The first attempt at an existing row changes nothing, so if it is
	// also the last attempt, the row does not show it.
	fresh := map[string]tsdb.State{
		"response lost, always": tsdb.Stored, "response lost with a code that is not retried": tsdb.Stored,
		"response lost with a cancelled call": tsdb.Stored, "response lost with a conflict, always": tsdb.Stored,
		"response too large for the connection": tsdb.Stored, "response lost, then refused": tsdb.Stored,
	}
	there := map[string]tsdb.State{
		"response lost, always": tsdb.Stored, "response lost with a conflict, always": tsdb.Stored,
		"response too large for the connection": tsdb.Stored,
	}
	s := merging(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout()}}}, s)
	r := s.For(store, acme)
	puts := map[string]func(at time.Time) error{
		"Put": func(at time.Time) error { return r.Put(t.Context(), roof, at, rec("mine", 1)) },
		"PutMany": func(at time.Time) error {
			outcomes, err := r.PutMany(t.Context(), []tsdb.Point[codec.Record]{{Entity: roof, Time: at, Value: rec("mine", 1)}})
			if (err == nil) != (outcomes[0].State == tsdb.Stored) {
				t.Errorf("PutMany: %v, %v", outcomes, err)
			}
			if be, ok := errors.AsType[*tsdb.BatchError](err); ok {
				return be.Unwrap()[0]
			}
			return err
		},
	}
	puts["Writer"] = func(at time.Time) error {
		w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{DeliveryTimeout: faultTimeout()}))
		defer w.Close(t.Context())
		var out tsdb.Outcome
		finished := make(chan struct{})
		_ = r.Via(w).EnqueueFunc(t.Context(), roof, at, rec("mine", 1), func(o tsdb.Outcome) {
			out = o
			close(finished)
		})
		<-finished
		if out.State == tsdb.Stored {
			return nil
		}
		return &tsdb.WriteError{Outcome: out}
	}
	at := start
	for name, put := range puts {
		for _, existing := range []bool{false, true} {
			for _, f := range faults {
				at = at.Add(time.Second)
				want, ok := fresh[f.name]
				if existing {
					want, ok = there[f.name]
					if err := r.Put(t.Context(), roof, at, rec("theirs", 2)); err != nil {
						t.Fatal(err)
					}
				}
				if !ok {
					want = f.want
				}
				inject(conn, tsdbtest.CheckAndMutateRow, f.fault)
				err := put(at)
				conn.Clear()
				p, rerr := r.Get(t.Context(), roof, at)
				if rerr != nil && !errors.Is(rerr, tsdb.ErrNotFound) {
					t.Fatal(rerr)
				}
				_, mine := p.Value.Lookup("mine")
				confirm(t, fmt.Sprintf("%s, row there %v, %s", name, existing, f.name), state(t, err), want, mine)
				if _, theirs := p.Value.Lookup("theirs"); theirs != existing {
					t.Errorf("%s, %s: the field of another writer is lost", name, f.name)
				}
			}
		}
	}
}

// TestMergeThatCannotRead: a write that finds a point and cannot read it may have written that point itself, if a proxy
// sent the write twice.
func TestMergeThatCannotRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := merging(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: time.Second}}}, s)
		r := s.For(store, acme)
		if err := r.Put(t.Context(), roof, start, rec("a", 1)); err != nil {
			t.Fatal(err)
		}
		for _, code := range []codes.Code{codes.PermissionDenied, codes.Unavailable} {
			conn.Inject(tsdbtest.Fail(code).On(tsdbtest.ReadRows))
			if err := r.Put(t.Context(), roof, start, rec("b", 1)); state(t, err) != tsdb.Unknown {
				t.Errorf("reads fail with %v: %v, want ErrUnknown", code, err)
			}
			conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1))
			if err := r.Put(t.Context(), roof, start, rec("b", 1)); state(t, err) != tsdb.Unknown {
				t.Errorf("a response is lost and reads fail with %v: %v, want ErrUnknown", code, err)
			}
			conn.Clear()
			wantRecord(t, "reads fail", r, start, "{a=1i}")
		}
	})
}

// TestMergeBehindAFasterWriter: a change between the read and the write is merged too, or the write is rejected.
func TestMergeBehindAFasterWriter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := merging(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: time.Second}}}, s)
		r := s.For(store, acme)
		if err := r.Put(t.Context(), roof, start, rec("a", 1)); err != nil {
			t.Fatal(err)
		}
		between := func(do func() error) tsdbtest.Fault {
			return tsdbtest.DelayBy(func() time.Duration {
				if err := do(); err != nil {
					t.Error(err)
				}
				return 0
			}).On(tsdbtest.CheckAndMutateRow).Skip(1).Times(1)
		}
		conn.Inject(between(func() error { return r.Put(t.Context(), roof, start, rec("b", 2)) }))
		if err := r.Put(t.Context(), roof, start, rec("c", 3)); err != nil {
			t.Error(err)
		}
		wantRecord(t, "after a faster writer", r, start, "{a=1i b=2i c=3i}")
		conn.Clear()
		conn.Inject(between(func() error { return r.Delete(t.Context(), roof, start) }))
		if err := r.Put(t.Context(), roof, start, rec("d", 4)); err != nil {
			t.Error(err)
		}
		wantRecord(t, "after a deletion", r, start, "{d=4i}")

		conn.Clear()
		others := s.For(store, acme)
		busy, n := false, int64(0)
		conn.Inject(tsdbtest.DelayBy(func() time.Duration {
			if busy {
				return 0
			}
			busy = true
			defer func() { busy = false }()
			n++
			if err := others.Put(t.Context(), roof, start, rec("n", n)); err != nil {
				t.Error(err)
			}
			return 0
		}).On(tsdbtest.CheckAndMutateRow))
		if err := r.Put(t.Context(), roof, start, rec("e", 5)); state(t, err) != tsdb.Rejected || n < 3 {
			t.Errorf("after %d writes of others: %v, want ErrRejected", n, err)
		}
		conn.Clear()
		wantRecord(t, "others were always faster", r, start, fmt.Sprintf("{d=4i n=%di}", n))
	})
}

// TestMergeLeavesWhatItCannotRead: a payload that is no record, or too large, is not changed.
func TestMergeLeavesWhatItCannotRead(t *testing.T) {
	old := codec.Convert(codec.JSON[map[string]int64](), func(map[string]int64) (codec.Record, error) { return rec("old", 1), nil }, nil)
	s, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.Fallback(codec.Records(), old), tsdb.SchemaOptions{Merge: true})
	if err != nil {
		t.Fatal(err)
	}
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	r := s.For(store, acme)
	const big = 8 << 10
	full, err := codec.Append(codec.Records(), nil, codec.NewRecord(codec.Field{Name: "s", Value: codec.Str(strings.Repeat("x", big))}))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tag, payload string
		want         []error
	}{
		{"json", `{"a":1}`, nil},
		{"raw", "x", []error{codec.ErrUnknownTag}},
		{"rec", "\x01\x01ax", []error{codec.ErrCorrupt}},
		{"rec", "", []error{codec.ErrCorrupt}},
		{"rec", string(full), nil},
	} {
		m := bigtable.NewMutation()
		m.DeleteRow()
		m.Set("keep", "p:"+tt.tag, bigtable.Time(start), []byte(tt.payload))
		apply(t, table, key(roof, start), m)
		before := rows(t, table)
		err := r.Put(t.Context(), roof, start, rec("new", 1))
		for _, want := range append(tt.want, stored.ErrNoMerge, tsdb.ErrRejected) {
			if !errors.Is(err, want) {
				t.Errorf("Put onto %.20q of %s: %v, want %v", tt.payload, tt.tag, err, want)
			}
		}
		if after := rows(t, table); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("Put onto %.20q of %s changed it", tt.payload, tt.tag)
		}
	}
}

// TestMergedPayloadsAreLimited: payloads up to the limit fit into the filter that compares them.
func TestMergedPayloadsAreLimited(t *testing.T) {
	class := gc.Class{Name: strings.Repeat("c", 32), Policy: gc.Never()}
	s := merging(t, tsdb.SchemaOptions{Retention: class})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	r := s.For(store, acme)
	text := func(name string, n int) codec.Record {
		return codec.NewRecord(codec.Field{Name: name, Value: codec.Str(strings.Repeat("x", n))})
	}
	const most = 8<<10 - 6 // the record's count, the field's name, type and length take the rest
	if err := r.Put(t.Context(), roof, start, text("s", most+1)); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), "8193 bytes") {
		t.Errorf("a payload over the limit: %v, want ErrInvalid", err)
	}
	if n := len(conn.Counts().Calls); n != 0 {
		t.Error("a payload over the limit was sent")
	}
	if err := r.Put(t.Context(), roof, start, text("s", most)); err != nil {
		t.Fatal(err)
	}
	if err := r.Put(t.Context(), roof, start, rec("b", 1)); !errors.Is(err, tsdb.ErrInvalid) || state(t, err) != tsdb.Rejected || !strings.Contains(err.Error(), "merged payload") {
		t.Errorf("a merge over the limit: %v, want ErrInvalid and ErrRejected", err)
	}
	if err := r.Put(t.Context(), roof, start, text("s", most-1)); err != nil {
		t.Errorf("replacing a payload at the limit: %v, want nil", err)
	}
}

// TestMergeMovesToTheWrittenClass: a merge moves the point to the class of the write, and takes over nothing that has
// expired.
func TestMergeMovesToTheWrittenClass(t *testing.T) {
	h1, keep := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}, gc.Class{Name: "keep", Policy: gc.Never()}
	old := merging(t, tsdb.SchemaOptions{Retention: h1, FormerClasses: []gc.Class{keep}})
	s := merging(t, tsdb.SchemaOptions{Retention: keep, FormerClasses: []gc.Class{h1}})
	for _, tt := range []struct {
		late time.Duration
		put  codec.Record
		want string
	}{{0, rec("b", 2), "{a=1i b=2i}"}, {0, rec("a", 1), "{a=1i}"}, {time.Millisecond, rec("b", 2), "{b=2i}"}} {
		c := testkit.NewClock(start)
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
		if err := old.For(store, acme).Put(t.Context(), roof, start, rec("a", 1)); err != nil {
			t.Fatal(err)
		}
		c.Set(start.Add(time.Hour + tt.late))
		if err := s.For(store, acme).Put(t.Context(), roof, start, tt.put); err != nil {
			t.Fatal(err)
		}
		wantRecord(t, fmt.Sprintf("%v after its end", tt.late), s.For(store, acme), start, tt.want)
		for _, row := range rows(t, table) {
			if len(row["h1"]) != 0 || len(row["keep"]) != 1 {
				t.Errorf("%v after its end the row is %v, want one payload in the written class", tt.late, row)
			}
		}
	}
}

// TestFixedFields: fixed fields can be added and repeated, but not changed.
func TestFixedFields(t *testing.T) {
	s := merging(t, tsdb.SchemaOptions{Immutable: "tag:"})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	r := s.For(store, acme)
	for _, v := range []codec.Record{rec("tag:a", 1), rec("tag:b", 2), rec("tag:a", 1), rec("ta", 3), rec("ta", 4)} {
		if err := r.Put(t.Context(), roof, start, v); err != nil {
			t.Fatal(err)
		}
	}
	for _, fault := range []tsdbtest.Fault{{}, tsdbtest.LoseResponse(codes.Unavailable).Times(1).On(tsdbtest.CheckAndMutateRow)} {
		conn.Inject(fault)
		err := r.Put(t.Context(), roof, start, rec("tag:a", 5).Merge(rec("x", 1)))
		if !errors.Is(err, tsdb.ErrExists) || state(t, err) != tsdb.Rejected || !strings.Contains(err.Error(), `"tag:a" is 5i`) {
			t.Errorf("another value of a fixed field: %v, want ErrExists", err)
		}
	}
	wantRecord(t, "fixed fields", r, start, "{ta=4i tag:a=1i tag:b=2i}")
}

func TestSchemasThatCannotMerge(t *testing.T) {
	key := tsdb.Key("site", "device")
	for _, tt := range []struct {
		opts tsdb.SchemaOptions
		want string
	}{
		{tsdb.SchemaOptions{Merge: true, FirstWins: true}, "FirstWins"},
		{tsdb.SchemaOptions{Immutable: "x"}, "Immutable"},
		{tsdb.SchemaOptions{Merge: true, Immutable: strings.Repeat("x", 33)}, "Immutable"},
		{tsdb.SchemaOptions{Merge: true, Immutable: "\xff"}, "Immutable"},
	} {
		if _, err := tsdb.Define("readings", key, codec.Records(), tt.opts); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Define with %+v: %v, want an error about %s", tt.opts, err, tt.want)
		}
	}
	for _, c := range []codec.Codec[codec.Record]{
		codec.JSON[codec.Record](), codec.Tagged("rec.v2", codec.Records()), codec.Fallback(codec.JSON[codec.Record](), codec.Records()),
	} {
		if _, err := tsdb.Define("readings", key, c, tsdb.SchemaOptions{Merge: true}); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), c.Tag()) {
			t.Errorf("Define with the codec %s: %v, want an error about it", c.Tag(), err)
		}
	}
}

// TestMergingIsPartOfTheFormat: programs that declare Merge differently would lose each other's fields.
func TestMergingIsPartOfTheFormat(t *testing.T) {
	plain, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.Records(), tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := []*tsdb.Schema[codec.Record]{plain, merging(t, tsdb.SchemaOptions{}), merging(t, tsdb.SchemaOptions{Immutable: "a"}), merging(t, tsdb.SchemaOptions{Immutable: "b"})}
	for i, s := range all {
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		for j, other := range all {
			ensured, verified := store.Ensure(t.Context(), other), store.Verify(t.Context(), other)
			if i != j && (!errors.Is(ensured, tenancy.ErrSchemaConflict) || !errors.Is(verified, tenancy.ErrSchemaConflict)) {
				t.Errorf("schema %d in a table of schema %d: %v, %v, want a conflict", j, i, ensured, verified)
			}
			if i == j && (ensured != nil || verified != nil) {
				t.Errorf("schema %d again: %v, %v", i, ensured, verified)
			}
		}
	}
}

// TestMergeAfterALostAnswer: the row that is found later differs from the one that the lost attempt wrote, so it proves
// nothing about that attempt.
func TestMergeAfterALostAnswer(t *testing.T) {
	s := merging(t, tsdb.SchemaOptions{})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1))
	conn.Inject(tsdbtest.DelayBy(func() time.Duration {
		m := bigtable.NewMutation()
		m.DeleteRow()
		m.Set("keep", "p:raw", bigtable.Time(start), []byte("x"))
		apply(t, table, key(roof, start), m)
		return 0
	}).On(tsdbtest.ReadRows).Times(1))
	err := s.For(store, acme).Put(t.Context(), roof, start, rec("a", 1))
	if !errors.Is(err, stored.ErrNoMerge) || state(t, err) != tsdb.Unknown {
		t.Errorf("Put: %v, want ErrUnknown", err)
	}
}

// TestWriterRepeatsWhatIsThrottled: a writer also retries throttled writes that it sends alone.
func TestWriterRepeatsWhatIsThrottled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		first := readings(t, tsdb.SchemaOptions{FirstWins: true})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, first)
		conn.Inject(tsdbtest.Fail(codes.ResourceExhausted).On(tsdbtest.CheckAndMutateRow).Times(1))
		out, err := first.For(store, acme).Via(writer(t, store, tsdb.WriterOptions{})).EnqueueMany(t.Context(), points(1))
		if err != nil || out[0].Attempts != 2 {
			t.Errorf("outcome %v, error %v; want stored by the second attempt", out, err)
		}
	})
}
