package dynamic_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var day1 = start.UTC().Truncate(24 * time.Hour)

func days(n int) time.Time { return day1.AddDate(0, 0, n) }

// records returns a schema without a fixed shape.
func records(t *testing.T, opts tsdb.SchemaOptions) *tsdb.Schema[codec.Record] {
	t.Helper()
	s, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.Records(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func objects(t *testing.T, opts tsdb.SchemaOptions) *tsdb.Schema[map[string]any] {
	t.Helper()
	s, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.JSON[map[string]any](), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// flushFields writes what a store has noted.
func flushFields(t *testing.T, store *tsdb.Store) {
	t.Helper()
	in, err := inside.Of(store).Internals()
	if err == nil {
		err = in.Fields.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// known returns the list of a tenant's fields, as text: "name kinds first-last" with days since day1.
func known(t *testing.T, store *tsdb.Store, id tenant.ID, d tsdb.Dataset) (fields []string, leftOut int) {
	t.Helper()
	list, err := dynamic.FieldsOf(t.Context(), store, id, d)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list.Fields {
		var kinds []string
		for _, k := range f.Kinds {
			kinds = append(kinds, k.String())
		}
		text := fmt.Sprintf("%s %s", f.Name, strings.Join(kinds, ","))
		if !f.First.IsZero() {
			text += fmt.Sprintf(" %d-%d", int(f.First.Sub(day1).Hours())/24, int(f.Last.Sub(day1).Hours())/24)
		}
		fields = append(fields, text)
	}
	return fields, list.LeftOut
}

func wantKnown(t *testing.T, store *tsdb.Store, id tenant.ID, d tsdb.Dataset, want ...string) {
	t.Helper()
	if got, left := known(t, store, id, d); !slices.Equal(got, want) || left != 0 {
		t.Fatalf("the list of fields is %q and %d more, want %q", got, left, want)
	}
}

func put[T any](t *testing.T, repo *tsdb.Repository[T], at time.Time, v T) {
	t.Helper()
	if err := repo.Put(t.Context(), roof, at, v); err != nil {
		t.Fatal(err)
	}
}

func object(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// The list has every field of every way to write, with its kinds and days, and costs one read and no request of a call.
func TestFieldsOf(t *testing.T) {
	clock := days(10)
	s := objects(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return clock }}}, s)
	repo := s.For(store, acme)
	wantKnown(t, store, acme, s)
	put(t, repo, days(3), object(t, `{"temp":21.5,"motor":{"on":true,"rpm":1200},"tags":["a"],"note":null,"empty":{}}`))
	put(t, repo, days(5), object(t, `{"temp":21,"name":"roof"}`))
	if _, err := repo.PutIfAbsent(t.Context(), roof, days(2), object(t, `{"once":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.PutMany(t.Context(), []tsdb.Point[map[string]any]{{Entity: roof, Time: days(1), Value: object(t, `{"temp":"cold"}`)}}); err != nil {
		t.Fatal(err)
	}
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.Via(w).Enqueue(t.Context(), roof, days(7), map[string]any{"written": -3, "big": uint64(1<<64 - 1)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := conn.Counts()
	flushFields(t, store)
	flushFields(t, store)
	if n := conn.Counts().Upkeep - before.Upkeep; n != 1 {
		t.Errorf("two flushes took %d requests, want 1", n)
	}
	conn.Reset()
	wantKnown(t, store, acme, s, "big uint 7-7", "motor.on bool 3-3", "motor.rpm int 3-3", "name str 5-5", "note null 3-3",
		"once int 2-2", "tags list 3-3", "temp float,int,str 1-5", "written int 7-7")
	if c := conn.Counts(); c.Calls[tsdbtest.ReadRows] != 1 || c.Upkeep > 0 {
		t.Errorf("the list took %+v, want one read", c)
	}
}

// other returns another process's store of the same table.
func other(t *testing.T, conn *tsdbtest.Conn, opts tsdb.StoreOptions) *tsdb.Store {
	t.Helper()
	client, admin := tsdbtest.Clients(t, conn)
	store, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{StoreOptions: opts, Admin: admin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// What several processes have seen joins, in any order of their writes: a later start moves no first day, and an import
// of old points no last one. A process that is killed before it writes loses only what no other has seen.
func TestKnownFieldsOfProcesses(t *testing.T) {
	at := func() time.Time { return days(100) }
	s := records(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: at}}, s)
	field := func(name string, v codec.Value) codec.Record {
		return codec.NewRecord(codec.Field{Name: name, Value: v})
	}
	steps := []struct {
		day   int
		value codec.Record
		want  []string
	}{
		{50, field("temp", codec.Float(1)), []string{"temp float 50-50"}},
		{60, field("temp", codec.Str("hot")), []string{"temp float,str 50-60"}},
		{10, field("temp", codec.Float(1)), []string{"temp float,str 10-60"}},
		{20, field("temp", codec.Float(1)), []string{"temp float,str 10-60"}},
		{70, field("temp", codec.Float(1)), []string{"temp float,str 10-70"}},
		{70, field("rpm", codec.Uint(1)), []string{"rpm uint 70-70", "temp float,str 10-70"}},
	}
	for _, step := range steps {
		one := other(t, conn, tsdb.StoreOptions{Clock: at})
		put(t, s.For(one, acme), days(step.day), step.value)
		wantKnown(t, one, acme, s, step.want...)
		if err := one.Close(); err != nil { // which writes what it has noted
			t.Fatal(err)
		}
		wantKnown(t, store, acme, s, step.want...)
	}
	one := other(t, conn, tsdb.StoreOptions{Clock: at})
	put(t, s.For(one, acme), days(70), field("late", codec.Bool(true)))
	end := conn.Outage()
	_ = one.Close() // as if it was killed
	end()
	wantKnown(t, store, acme, s, "rpm uint 70-70", "temp float,str 10-70")
	put(t, s.For(store, acme), days(70), field("late", codec.Bool(true)))
	flushFields(t, store)
	wantKnown(t, other(t, conn, tsdb.StoreOptions{Clock: at}), acme, s, "late bool 70-70", "rpm uint 70-70", "temp float,str 10-70")
}

// A field stays as long as points of its last day are visible, in each class by its own age, and never goes before
// them.
func TestKnownFieldsExpire(t *testing.T) {
	now := days(0)
	clock := func() time.Time { return now }
	s := records(t, tsdb.SchemaOptions{
		Retention: gc.Class{Name: "short", Policy: gc.MaxAge(2 * time.Hour)}, Classes: []gc.Class{{Name: "long", Policy: gc.MaxAge(10 * 24 * time.Hour)}},
	})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock}}, s)
	now = days(1).Add(22 * time.Hour)
	put(t, s.For(store, acme), now, codec.NewRecord(codec.Field{Name: "temp", Value: codec.Float(1)}))
	flushFields(t, store)
	for _, left := range []time.Duration{4 * time.Hour, 2 * time.Hour, time.Millisecond, 0} { // until the age has passed since the end of the day
		var want []string
		if left > 0 {
			want = []string{"temp float 1-1"}
		}
		now = days(2).Add(2*time.Hour - left)
		reader := other(t, conn, tsdb.StoreOptions{Clock: clock})
		wantKnown(t, reader, acme, s, want...)
		visible := 0
		for range s.For(reader, acme).Range(t.Context(), roof, tsdb.Interval{}) {
			visible++
		}
		if visible > 0 && want == nil {
			t.Errorf("%v before the field expires a point is visible and its field is not", left)
		}
		wantKnown(t, store, acme, s, want...)
	}
}

// Names that a device invents are bounded and counted; each listed name comes back byte for byte.
func TestKnownFieldsAreBounded(t *testing.T) {
	s := objects(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return days(1) }}}, s)
	hostile := map[string]any{
		"": 1, "a:float": 1, ":": 1, "a#b": 1, "%": "x", "l:a:str": true, "\x00\n\t": 1, "ü.名": 1, "a.b": 1, "a": map[string]any{"b": "both"},
		strings.Repeat("x", 255): 1, strings.Repeat("y", 256): 1, "<b>&": 1, "\u2028": 1,
	}
	put(t, s.For(store, acme), days(1), hostile)
	flushFields(t, store)
	var want []string
	for name := range hostile {
		if name != "a" && len(name) < 256 {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	check := func(store *tsdb.Store) {
		t.Helper()
		list, err := dynamic.FieldsOf(t.Context(), store, acme, s)
		var got []string
		for _, f := range list.Fields {
			got = append(got, f.Name)
			if f.Name == "a.b" && len(f.Kinds) != 2 {
				t.Errorf("a.b has the kinds %v, want int and str", f.Kinds)
			}
		}
		if err != nil || !slices.Equal(got, want) || list.LeftOut != 1 {
			t.Errorf("the list has %q and %d more, %v; want %q and 1", got, list.LeftOut, err, want)
		}
	}
	check(store)
	reader := other(t, conn, tsdb.StoreOptions{Clock: func() time.Time { return days(1) }})
	check(reader)
	for i := range 1500 {
		put(t, s.For(store, acme), days(1), map[string]any{fmt.Sprintf("n%04d", i): i})
	}
	flushFields(t, store)
	for _, store := range []*tsdb.Store{store, reader} {
		if fields, left := known(t, store, acme, s); len(fields) != 1000 || left < 256 || left > 1500 {
			t.Errorf("the list has %d fields and %d more, want 1000 and about 500", len(fields), left)
		}
	}
	wantKnown(t, store, tenant.MustParse("other"), s)
}

// An erasure takes the list, also what a process has not written yet, and a readmitted tenant starts with an empty one.
func TestKnownFieldsAreErased(t *testing.T) {
	s := records(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return days(1) }}}, s)
	writer := other(t, conn, tsdb.StoreOptions{Clock: func() time.Time { return days(1) }})
	one := func(name string) codec.Record { return codec.NewRecord(codec.Field{Name: name, Value: codec.Int(1)}) }
	put(t, s.For(store, acme), days(1), one("written"))
	flushFields(t, store)
	put(t, s.For(writer, acme), days(1), one("unwritten"))
	put(t, s.For(store, tenant.MustParse("acme2")), days(1), one("neighbour"))
	flushFields(t, store)
	report, err := tenants.Erase(t.Context(), writer, acme, tenants.EraseOptions{Settle: 1, RowsPerSecond: -1})
	if err != nil || !slices.ContainsFunc(report.Kinds, func(k tenants.Counted) bool { return k.Dataset == "readings" && k.Kind == "fields" && k.Rows == 1 }) {
		t.Fatalf("the report of the erasure is %+v, %v; want one row of the kind fields", report, err)
	}
	if _, err := dynamic.FieldsOf(t.Context(), writer, acme, s); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("the list of an erased tenant: %v, want ErrErased", err)
	}
	in, err := inside.Of(writer).Internals()
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Fields.Flush(t.Context())
	if err := tenants.Readmit(t.Context(), writer, acme); err != nil {
		t.Fatal(err)
	}
	reader := other(t, conn, tsdb.StoreOptions{Clock: func() time.Time { return days(1) }})
	wantKnown(t, reader, acme, s)
	wantKnown(t, reader, tenant.MustParse("acme2"), s, "neighbour int 1-1")
	put(t, s.For(writer, acme), days(1), one("unwritten"))
	flushFields(t, writer)
	wantKnown(t, reader, acme, s, "unwritten int 1-1")
}

// The list is inside a tenant's authorized view, and of one tenant only.
func TestKnownFieldsInViews(t *testing.T) {
	s, beta := records(t, tsdb.SchemaOptions{}), tenant.MustParse("beta")
	opts := tsdb.StoreOptions{Clock: func() time.Time { return days(1) }, Views: true}
	var past atomic.Int64 // requests for a list that go to the table, past the views
	note := func(m any) {
		if req, ok := m.(interface{ GetTableName() string }); ok && req.GetTableName() != "" && strings.Contains(fmt.Sprint(m), "!fields#") {
			past.Add(1)
		}
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: opts, ViewsFor: []tenant.ID{acme, beta}, DialOptions: []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			note(req)
			return invoker(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := streamer(ctx, desc, cc, name, opts...)
			return &noted{stream, note}, err
		}),
	}}, s)
	put(t, s.For(store, acme), days(1), codec.NewRecord(codec.Field{Name: "mine", Value: codec.Int(1)}))
	put(t, s.For(store, beta), days(1), codec.NewRecord(codec.Field{Name: "theirs", Value: codec.Int(1)}))
	flushFields(t, store)
	reader := other(t, conn, opts)
	wantKnown(t, reader, acme, s, "mine int 1-1")
	wantKnown(t, reader, beta, s, "theirs int 1-1")
	if _, err := dynamic.FieldsOf(tenant.NewContext(t.Context(), beta), reader, acme, s); !errors.Is(err, tsdb.ErrTenantMismatch) {
		t.Errorf("the list of another tenant: %v, want ErrTenantMismatch", err)
	}
	wantKnown(t, store, acme, s, "mine int 1-1")
	if n := past.Load(); n > 0 {
		t.Errorf("%d requests for lists go past the views, want 0", n)
	}
}

// noted calls note with each message that it sends.
type noted struct {
	grpc.ClientStream
	note func(m any)
}

func (s *noted) SendMsg(m any) error {
	s.note(m)
	return s.ClientStream.SendMsg(m)
}

// A flush follows the first change by three seconds, a failed one is repeated after longer and longer pauses, Close
// writes what is left, and nothing is written while nothing is new.
func TestKnownFieldsAreWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := records(t, tsdb.SchemaOptions{})
		opts := tsdb.StoreOptions{Clock: func() time.Time { return days(1) }}
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: opts}, s)
		one := func(name string) {
			t.Helper()
			put(t, s.For(store, acme), days(1), codec.NewRecord(codec.Field{Name: name, Value: codec.Int(1)}))
		}
		var sent, refused atomic.Int64
		conn.Inject(tsdbtest.FailEntries(codes.PermissionDenied, func(key string) bool {
			return strings.Contains(key, "!fields#") && sent.Add(1) > 0 && refused.Load() > 0
		}))
		writes := func(after time.Duration, want int64) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if n := sent.Swap(0); n != want {
				t.Fatalf("the list was written %d times, want %d", n, want)
			}
		}
		one("a")
		writes(2900*time.Millisecond, 0)
		one("b")
		writes(200*time.Millisecond, 1)
		one("a")
		writes(time.Hour, 0)
		refused.Store(1)
		one("c")
		writes(3100*time.Millisecond, 1)
		writes(5*time.Second, 0) // the second attempt is after 9 seconds, the third after 21
		writes(2*time.Second, 1)
		writes(10*time.Second, 0)
		refused.Store(0)
		writes(2*time.Second, 1)
		writes(time.Hour, 0)
		one("d")
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		writes(0, 1)
		wantKnown(t, other(t, conn, opts), acme, s, "a int 1-1", "b int 1-1", "c int 1-1", "d int 1-1")
	})
}

// A tenant's row that many processes have begun is read in part: the fields of the latest, and a note that there is
// more.
func TestKnownFieldsOfManyProcesses(t *testing.T) {
	at := func() time.Time { return days(1000) }
	s := records(t, tsdb.SchemaOptions{Retention: gc.Class{Name: "all", Policy: gc.MaxAge(36_500 * 24 * time.Hour)}})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: at}}, s)
	row := bigtable.NewMutation()
	for day := range 30 {
		for i := range 700 {
			column := fmt.Sprintf("l:%07d:int:f%d", 2_932_897-day, i)
			row.Set("all", column, bigtable.Timestamp((day+1)*86_400_000_000-1000), nil)
		}
	}
	if err := table.Apply(t.Context(), "acme#readings!fields#", row); err != nil {
		t.Fatal(err)
	}
	list, err := dynamic.FieldsOf(t.Context(), store, acme, s)
	if err != nil || len(list.Fields) != 700 || list.LeftOut != 1 || !list.Fields[0].Last.Equal(time.Unix(29*86_400, 0)) {
		t.Fatalf("%d fields and %d more, %v; want 700 and 1", len(list.Fields), list.LeftOut, err)
	}
}

// A write of the list that fails delays no point, loses no field, and is repeated.
func TestKnownFieldsSurviveFaults(t *testing.T) {
	s := records(t, tsdb.SchemaOptions{})
	opts := tsdb.StoreOptions{Clock: func() time.Time { return days(1) }, Timeouts: tsdb.Timeouts{Write: 50 * time.Millisecond}}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: opts}, s)
	isList := func(key string) bool { return strings.Contains(key, "!fields#") }
	in, err := inside.Of(store).Internals()
	if err != nil {
		t.Fatal(err)
	}
	for i, fault := range []tsdbtest.Fault{
		tsdbtest.FailEntries(codes.PermissionDenied, isList), tsdbtest.Fail(codes.Unavailable).On(tsdbtest.MutateRows), tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRows),
	} {
		name := fmt.Sprintf("f%d", i)
		put(t, s.For(store, acme), days(1), codec.NewRecord(codec.Field{Name: name, Value: codec.Int(1)}))
		conn.Inject(fault)
		if in.Fields.Flush(t.Context()) == nil {
			t.Errorf("fault %d: the flush does not fail", i)
		}
		conn.Clear()
		flushFields(t, store)
		fields, _ := known(t, other(t, conn, opts), acme, s)
		if !slices.Contains(fields, name+" int 1-1") {
			t.Errorf("after fault %d the list is %q", i, fields)
		}
	}
}
