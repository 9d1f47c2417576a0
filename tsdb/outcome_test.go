package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// faults are what can go wrong with a write, and the expected outcome. The tests compare it with the table.
var faults = []struct {
	name  string
	fault func(m tsdbtest.Method) tsdbtest.Fault
	want  tsdb.State // of single writes and of every entry
}{
	{"none", func(tsdbtest.Method) tsdbtest.Fault { return tsdbtest.Fault{} }, tsdb.Stored},
	{"error before, once", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.Fail(codes.Unavailable).On(m).Times(1) }, tsdb.Stored},
	{"error before, always", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.Fail(codes.Unavailable).On(m) }, tsdb.Unknown},
	{"refused", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.Fail(codes.PermissionDenied).On(m) }, tsdb.Rejected},
	{"throttled always", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.Fail(codes.ResourceExhausted).On(m) }, tsdb.Unknown},
	{"response lost, once", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.LoseResponse(codes.Unavailable).On(m).Times(1) }, tsdb.Stored},
	{"response lost, twice", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.LoseResponse(codes.Internal).On(m).Times(2) }, tsdb.Stored},
	{"response lost, always", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.LoseResponse(codes.Unavailable).On(m) }, tsdb.Unknown},
	{"response lost with a code that is not retried", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.LoseResponse(codes.Unknown).On(m) }, tsdb.Unknown},
	{"response lost with a cancelled call", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.LoseResponse(codes.Canceled).On(m) }, tsdb.Unknown},
	{"response lost with a conflict, always", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.LoseResponse(codes.Aborted).On(m) }, tsdb.Unknown},
	{"response too large for the connection", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.LoseResponse(codes.ResourceExhausted).On(m) }, tsdb.Unknown},
	{"response lost, then refused", nil, tsdb.Unknown},
	{"slow", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.Delay(20 * time.Millisecond).On(m) }, tsdb.Stored},
	{"never answers", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.Delay(time.Hour).On(m) }, tsdb.Unknown},
}

// bulkFaults are the faults of a write of several rows.
var bulkFaults = append(faults[:len(faults):len(faults)], []struct {
	name  string
	fault func(m tsdbtest.Method) tsdbtest.Fault
	want  tsdb.State
}{
	{"stream cut, once", func(m tsdbtest.Method) tsdbtest.Fault { return tsdbtest.CutStream(2, codes.Unavailable).On(m).Times(1) }, tsdb.Stored},
	{"one entry fails once", func(tsdbtest.Method) tsdbtest.Fault {
		return tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return strings.Contains(key, "d2#") }).Times(1)
	}, tsdb.Stored},
	{"all entries fail once", func(tsdbtest.Method) tsdbtest.Fault {
		return tsdbtest.FailEntries(codes.Aborted, func(string) bool { return true }).Times(1)
	}, tsdb.Stored},
}...)

func inject(conn *tsdbtest.Conn, m tsdbtest.Method, f func(tsdbtest.Method) tsdbtest.Fault) {
	conn.Clear()
	if f != nil {
		conn.Inject(f(m))
		return
	}
	conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(m).Times(1))
	conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(m).Skip(1))
}

// state reads the state of a write from its error. It fails the test if the error is not a documented one.
func state(t *testing.T, err error) tsdb.State {
	t.Helper()
	var we *tsdb.WriteError
	switch {
	case err == nil:
		return tsdb.Stored
	case !errors.As(err, &we):
		t.Fatalf("%v is not a *WriteError", err)
	case errors.Is(err, tsdb.ErrRejected) && !errors.Is(err, tsdb.ErrUnknown):
		return tsdb.Rejected
	case errors.Is(err, tsdb.ErrUnknown) && !errors.Is(err, tsdb.ErrRejected):
		return tsdb.Unknown
	}
	t.Fatalf("%v matches neither or both of ErrRejected and ErrUnknown", err)
	return 0
}

// confirm compares a state with the content of the table.
func confirm(t *testing.T, what string, got, want tsdb.State, there bool) {
	t.Helper()
	if got != want {
		t.Errorf("%s: state %v, want %v", what, got, want)
	}
	if got == tsdb.Stored && !there || got == tsdb.Rejected && there {
		t.Errorf("%s: reported %v, but the row exists: %v", what, got, there)
	}
}

func TestSingleWritesReportWhatTheTableConfirms(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, singleWrites)
}

func singleWrites(t *testing.T) {
	calls := []struct {
		name   string
		method tsdbtest.Method
		opts   tsdb.SchemaOptions
		put    func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) error
	}{
		{"Put", tsdbtest.MutateRow, tsdb.SchemaOptions{}, func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) error {
			return r.Put(ctx, roof, at, reading{21.5})
		}},
		{"Put, first wins", tsdbtest.CheckAndMutateRow, tsdb.SchemaOptions{FirstWins: true}, func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) error {
			return r.Put(ctx, roof, at, reading{21.5})
		}},
		{"PutIfAbsent", tsdbtest.CheckAndMutateRow, tsdb.SchemaOptions{}, func(ctx context.Context, r *tsdb.Repository[reading], at time.Time) error {
			stored, err := r.PutIfAbsent(ctx, roof, at, reading{21.5})
			if err == nil && !stored {
				return errors.New("PutIfAbsent says that another point was there")
			}
			return err
		}},
	}
	for _, call := range calls {
		s := readings(t, call.opts)
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout()}}}, s)
		repo := s.For(store, acme)
		for i, f := range faults {
			at := start.Add(time.Duration(i) * time.Second)
			inject(conn, call.method, f.fault)
			err := call.put(t.Context(), repo, at)
			conn.Clear()
			key := fmt.Sprintf("acme#readings#berlin#roof-7#%019d", (1<<63-1)-at.UnixNano())
			row, rerr := table.ReadRow(t.Context(), key)
			if rerr != nil {
				t.Fatal(rerr)
			}
			confirm(t, call.name+", "+f.name, state(t, err), f.want, row != nil)
		}
	}
}

func TestPutManyReportsEachPointAsTheTableConfirms(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, manyWrites)
}

func manyWrites(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout()}}}, s)
	repo := s.For(store, acme)
	for i, f := range bulkFaults {
		at := start.Add(time.Duration(i) * time.Second)
		points := make([]tsdb.Point[reading], 5)
		for n := range points {
			points[n] = tsdb.Point[reading]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("d%d", n)), Time: at, Value: reading{float64(n)}}
		}
		inject(conn, tsdbtest.MutateRows, f.fault)
		outcomes, err := repo.PutMany(t.Context(), points)
		conn.Clear()
		if (err == nil) != (f.want == tsdb.Stored) {
			t.Errorf("%s: error %v", f.name, err)
		}
		there := rows(t, table)
		for n, o := range outcomes {
			key := fmt.Sprintf("acme#readings#berlin#d%d#%019d", n, (1<<63-1)-at.UnixNano())
			confirm(t, fmt.Sprintf("PutMany, %s, point %d", f.name, n), o.State, f.want, there[key] != nil)
			if (o.Err == nil) != (o.State == tsdb.Stored) {
				t.Errorf("%s, point %d: %v with error %v", f.name, n, o.State, o.Err)
			}
		}
	}
}

// TestOneBadPointDoesNotHinderTheOthers mixes points that the store rejects, that the service rejects, whose response
// is lost, and that are stored.
func TestOneBadPointDoesNotHinderTheOthers(t *testing.T) {
	bubble(t, oneBadPoint)
}

func oneBadPoint(t *testing.T) {
	for _, first := range []bool{false, true} {
		s := readings(t, tsdb.SchemaOptions{FirstWins: first})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout()}}}, s)
		repo := s.For(store, acme)
		e := func(d string) tsdb.Entity { return tsdb.NewEntity("berlin", d) }
		points := []tsdb.Point[reading]{
			{Entity: e("good1"), Time: start},
			{Entity: tsdb.NewEntity("berlin"), Time: start},
			{Entity: e("poison"), Time: start},
			{Entity: e("good2"), Time: time.Unix(-1, 0)},
			{Entity: e("good2"), Time: start},
		}
		want := []tsdb.State{tsdb.Stored, tsdb.Rejected, tsdb.Rejected, tsdb.Rejected, tsdb.Stored}
		conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(key string) bool { return strings.Contains(key, "poison") }))
		if first {
			want[2] = tsdb.Stored // sent row by row, without a fault
		}
		outcomes, err := repo.PutMany(t.Context(), points)
		var be *tsdb.BatchError
		if !errors.As(err, &be) || be.Total != 5 || !errors.Is(err, tsdb.ErrInvalid) || !errors.Is(err, tsdb.ErrRejected) {
			t.Errorf("first wins %v: error %v", first, err)
		}
		for i, o := range outcomes {
			if o.State != want[i] {
				t.Errorf("first wins %v: point %d is %v (%v), want %v", first, i, o.State, o.Err, want[i])
			}
		}
		if n := len(rows(t, table)); first && n != 3 || !first && n != 2 {
			t.Errorf("first wins %v: the table holds %d rows", first, n)
		}
	}
}

func TestLaterOfTwoPointsAtOneTimeWins(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for _, fault := range []tsdbtest.Fault{{}, tsdbtest.Fail(codes.Unavailable).On(tsdbtest.MutateRows).Times(1)} {
		conn.Clear()
		conn.Inject(fault)
		var points []tsdb.Point[reading]
		for n := range 10 {
			points = append(points, tsdb.Point[reading]{Entity: roof, Time: start, Value: reading{float64(n)}})
		}
		if _, err := repo.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		if p := must[tsdb.Point[reading]](t)(repo.Get(t.Context(), roof, start)); p.Value.TempC != 9 {
			t.Errorf("of ten points at one time, %v is stored; want the last", p.Value)
		}
	}
}

func TestPutIfAbsentKeepsTheFirst(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	put := must[bool](t)
	if !put(repo.PutIfAbsent(t.Context(), roof, start, reading{1})) {
		t.Error("PutIfAbsent of the first value = false, want true")
	}
	if put(repo.PutIfAbsent(t.Context(), roof, start, reading{2})) || put(repo.PutIfAbsent(t.Context(), roof, start, reading{1})) {
		t.Error("PutIfAbsent of a second value = true, want false")
	}
	// After a lost response, a row with another's point does not prove that the write lost: the other point may have
	// replaced it.
	conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1))
	if stored, err := repo.PutIfAbsent(t.Context(), roof, start, reading{3}); stored || !errors.Is(err, tsdb.ErrUnknown) {
		t.Errorf("after a lost response, with another's point: %v, %v; want ErrUnknown", stored, err)
	}
	if p := must[tsdb.Point[reading]](t)(repo.Latest(t.Context(), roof)); p.Value.TempC != 1 {
		t.Errorf("the row holds %v, want the first value", p.Value)
	}
}

func TestFirstWinsRejectsAnotherValueOnly(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{FirstWins: true})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for range 2 {
		if err := repo.Put(t.Context(), roof, start, reading{1}); err != nil {
			t.Fatalf("a repeated Put of an equal value: %v", err)
		}
	}
	err := repo.Put(t.Context(), roof, start, reading{2})
	if !errors.Is(err, tsdb.ErrExists) || !errors.Is(err, tsdb.ErrRejected) {
		t.Errorf("Put of another value: %v, want ErrExists", err)
	}
	outcomes, err := repo.PutMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{3}}, {Entity: roof, Time: start.Add(1), Value: reading{4}}, {Entity: roof, Time: start.Add(1), Value: reading{5}}})
	if !errors.Is(err, tsdb.ErrExists) || outcomes[0].State != tsdb.Rejected || outcomes[1].State != tsdb.Stored || outcomes[2].State != tsdb.Rejected {
		t.Errorf("PutMany: %v, %v", outcomes, err)
	}
}

func TestNothingIsSentAfterTheContextHasEnded(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := repo.Put(ctx, roof, start, reading{}); !errors.Is(err, tsdb.ErrRejected) || !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v, want ErrRejected by the context", err)
	}
	outcomes, err := repo.PutMany(ctx, []tsdb.Point[reading]{{Entity: roof, Time: start}})
	if outcomes[0].State != tsdb.Rejected || !errors.Is(err, context.Canceled) {
		t.Errorf("PutMany: %v, %v; want ErrRejected by the context", outcomes, err)
	}
	if n := conn.Counts().Calls[tsdbtest.MutateRow]; n != 0 {
		t.Errorf("%d writes were sent", n)
	}
}

// TestOfficialClientCountsTwice shows why the guard exists: under a fault that Put survives, the client's own retry of
// an addition stores 10 instead of 5.
func TestOfficialClientCountsTwice(t *testing.T) {
	store, conn := tsdbtest.Open(t, tsdbtest.Options{})
	_ = store
	client, admin := tsdbtest.Clients(t, conn)
	families := map[string]bigtable.Family{"s": {ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}}}
	if err := admin.CreateTableFromConf(t.Context(), &bigtable.TableConf{TableID: "sums", ColumnFamilies: families}); err != nil {
		t.Fatal(err)
	}
	conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRow).Times(1))
	m := bigtable.NewMutation()
	m.AddIntToCell("s", "total", 0, 5)
	if err := client.Open("sums").Apply(t.Context(), "row", m); err != nil {
		t.Fatal(err)
	}
	row, err := client.Open("sums").ReadRow(t.Context(), "row")
	if err != nil || len(row["s"]) != 1 {
		t.Fatal(row, err)
	}
	if got := row["s"][0].Value; got[7] != 10 {
		t.Errorf("the official client stored % x, want 10: it no longer repeats additions, so the guard may not be needed", got)
	}
}

// TestAnHourOfOutage: retries stop at the deadline, however long the outage is. The simulated clock makes the test
// fast.
func TestAnHourOfOutage(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{})
		if err != nil {
			t.Fatal(err)
		}
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: time.Hour}}}, s)
		end := conn.Outage()
		begin := time.Now()
		err = s.For(store, acme).Put(t.Context(), roof, start, reading{})
		if !errors.Is(err, tsdb.ErrUnknown) || time.Since(begin) > time.Hour {
			t.Errorf("Put in an outage: %v after %v", err, time.Since(begin))
		}
		if n := conn.Counts().Calls[tsdbtest.MutateRow]; n < 1000 || n > 8000 {
			t.Errorf("%d attempts in an hour, want 1000 to 8000", n)
		}
		end()
		if err := s.For(store, acme).Put(t.Context(), roof, start, reading{}); err != nil {
			t.Errorf("Put after the outage: %v", err)
		}
	})
}
