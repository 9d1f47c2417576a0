package bt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRequestsAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		entry Entry
		n     int
		want  int
	}{
		{"entries", Entry{Key: "k", Mutations: 1, Bytes: 10}, 30_000, MaxEntries},
		{"mutations", Entry{Key: "k", Mutations: 100, Bytes: 10}, 30_000, MaxMutations / 100},
		{"bytes", Entry{Key: "k", Mutations: 1, Bytes: 1<<20 - 1}, 100, MaxBytes >> 20},
		{"one entry over the limit", Entry{Key: "k", Mutations: 1, Bytes: 10 << 20}, 3, 1},
		{"few", Entry{Key: "k", Mutations: 1, Bytes: 10}, 3, 3},
	} {
		b := bulk{entries: slices.Repeat([]Entry{tt.entry}, tt.n)}
		todo := make([]int, tt.n)
		for i := range todo {
			todo[i] = i
		}
		if got := b.fit(todo); got != tt.want {
			t.Errorf("%s: got %d entries in a request, want %d", tt.name, got, tt.want)
		}
	}
}

// TestLostResponseStaysUnknown checks that a refusal after an attempt without a response does not make the write
// rejected: the earlier attempt may have been applied.
func TestLostResponseStaysUnknown(t *testing.T) {
	lost, refusal := status.Error(codes.Unavailable, "lost"), status.Error(codes.PermissionDenied, "refused")
	for _, tt := range []struct {
		attempts []error
		want     State
	}{
		{[]error{nil}, Stored},
		{[]error{lost, nil}, Stored},
		{[]error{refusal}, Rejected},
		{[]error{refusal, refusal}, Rejected},
		{[]error{lost}, Unknown},
		{[]error{lost, refusal}, Unknown},
		{[]error{refusal, lost, refusal}, Unknown},
		{[]error{context.Canceled}, Unknown},
		{[]error{errors.New("no status")}, Unknown},
	} {
		var tr Tracker
		for _, err := range tt.attempts {
			tr.Note(err, !refused(err))
		}
		if out := tr.Outcome(); out.State != tt.want || out.Attempts != len(tt.attempts) {
			t.Errorf("after %v: got %+v, want state %d", tt.attempts, out, tt.want)
		}
	}
}

func TestOnlyRefusalsAreCertain(t *testing.T) {
	certain := []codes.Code{
		codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.Unauthenticated,
		codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented,
	}
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		if got := refused(status.Error(c, "x")); got != slices.Contains(certain, c) {
			t.Errorf("%v: got refused=%v", c, got)
		}
	}
}

// TestVerdict checks the result of an entry without an answer of its own. It depends on how far the stream got.
func TestVerdict(t *testing.T) {
	denied := status.Error(codes.PermissionDenied, "x")
	throttled := status.Error(codes.ResourceExhausted, "x")
	for _, tt := range []struct {
		name         string
		rec          record
		err          error
		maybeApplied bool
	}{
		{"stored", record{answers: []entryState{{answered: true}}}, nil, false},
		{"entry refused", record{answers: []entryState{{answered: true, err: denied}}}, denied, false},
		{"entry throttled", record{answers: []entryState{{answered: true, err: throttled}}}, throttled, false},
		{"whole request refused", record{err: denied, answers: make([]entryState, 1)}, denied, false},
		{"whole request throttled", record{err: throttled, answers: make([]entryState, 1)}, throttled, true},
		{"without an answer, the stream broke after others", record{err: denied, answered: true, answers: make([]entryState, 1)}, denied, true},
		{"without an answer, the stream ended normally", record{answered: true, answers: make([]entryState, 1)}, errNoAnswer, true},
	} {
		if err, maybeApplied := tt.rec.verdict(0); err != tt.err || err != nil && maybeApplied != tt.maybeApplied {
			t.Errorf("%s: got %v, maybe applied %v; want %v, %v", tt.name, err, maybeApplied, tt.err, tt.maybeApplied)
		}
	}
}

// answering is a stream that answers a bulk write once.
type answering struct {
	grpc.ClientStream
	entries []*btpb.MutateRowsResponse_Entry
}

func (s *answering) RecvMsg(m any) error {
	m.(*btpb.MutateRowsResponse).Entries = s.entries
	return nil
}

// TestGuardShowsTheClientWhatIsStored checks that the guard passes only the answers of stored entries to the client.
// The client reports an error for each entry without an answer, and could retry an entry whose answer is an error.
func TestGuardShowsTheClientWhatIsStored(t *testing.T) {
	entry := func(i int64, c codes.Code) *btpb.MutateRowsResponse_Entry {
		return &btpb.MutateRowsResponse_Entry{Index: i, Status: &statuspb.Status{Code: int32(c)}}
	}
	rec := record{answers: make([]entryState, 4)}
	s := guardedStream{rec: &rec, ClientStream: &answering{entries: []*btpb.MutateRowsResponse_Entry{
		entry(0, codes.OK), entry(1, codes.Unavailable), entry(2, codes.OK), entry(9, codes.OK), {Index: 3},
	}}}
	var res btpb.MutateRowsResponse
	if err := s.RecvMsg(&res); err != nil {
		t.Fatal(err)
	}
	var shown []int64
	for _, e := range res.Entries {
		shown = append(shown, e.Index)
	}
	if !slices.Equal(shown, []int64{0, 2}) {
		t.Errorf("the client got the answers of entries %v, want those of the stored entries 0 and 2", shown)
	}
	if err, _ := rec.verdict(1); status.Code(err) != codes.Unavailable {
		t.Errorf("entry 1: got %v, want UNAVAILABLE", err)
	}
	if err, _ := rec.verdict(3); err != errNoAnswer {
		t.Errorf("entry 3, answered without a status: got %v, want %v", err, errNoAnswer)
	}
}

func TestWaitHonoursWhatTheServiceAsksFor(t *testing.T) {
	asks := func(d time.Duration) error {
		st, err := status.New(codes.FailedPrecondition, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var p pauser
		begin := time.Now()
		if err := asks(5 * time.Second); !retryable(err) || !p.wait(ctx, err) || time.Since(begin) < 5*time.Second {
			t.Errorf("waited %v, want at least the 5 s that the service asked for", time.Since(begin))
		}
		begin = time.Now()
		if p.wait(ctx, asks(time.Hour)) || time.Since(begin) > 0 {
			t.Errorf("a wait past the deadline took %v, want it to end at once", time.Since(begin))
		}
		for range 1000 {
			begin = time.Now()
			if !p.wait(t.Context(), status.Error(codes.Unavailable, "x")) || time.Since(begin) > longestGap*3/2 {
				t.Fatalf("waited %v, want about 25 ms", time.Since(begin))
			}
		}
	})
}

// slow is a table whose rows arrive after the context has ended, as the client delivers rows that it has already
// received.
type slow struct {
	bigtable.TableAPI
	cancel context.CancelFunc
}

func (s slow) ReadRows(_ context.Context, _ bigtable.RowSet, f func(bigtable.Row) bool, _ ...bigtable.ReadOption) error {
	for i := range 10 {
		if i == 3 {
			s.cancel()
		}
		if !f(bigtable.Row{"f": {{Row: fmt.Sprint(i)}}}) {
			return nil
		}
	}
	return nil
}

func TestRowsEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	table := New(slow{cancel: cancel}, nil, nil, Timeouts{Read: time.Minute, Write: time.Minute, Scan: time.Minute})
	n := 0
	var last error
	for _, err := range table.Rows(ctx, Scan{Rows: bigtable.RowRangeList{}}) {
		if last = err; err == nil {
			n++
		}
	}
	if n != 3 || !errors.Is(last, context.Canceled) {
		t.Errorf("got %d rows, then %v; want 3 and the context's error", n, last)
	}
}

func TestWithinKeepsTheEarlierDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	in, done := within(ctx, time.Hour)
	defer done()
	if in != ctx {
		t.Error("within set a second timer for a context that ends earlier")
	}
	in, done = within(ctx, time.Millisecond)
	defer done()
	if at, ok := in.Deadline(); !ok || time.Until(at) > time.Millisecond {
		t.Errorf("got deadline %v", at)
	}
}
