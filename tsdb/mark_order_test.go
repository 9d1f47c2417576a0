package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// conditionalSchemas are options of schemas whose Put or PutIfAbsent is a conditional write.
var conditionalSchemas = map[string]tsdb.SchemaOptions{
	"plain":            {},
	"first wins":       {FirstWins: true},
	"first wins heads": {FirstWins: true, Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds},
	"merge":            {Merge: true},
	"merge heads":      {Merge: true, Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds},
}

// conditionalCalls returns the markCalls that are conditional writes in a schema.
func conditionalCalls(opts tsdb.SchemaOptions, add time.Time) []markCall {
	return slices.DeleteFunc(markCalls([]time.Time{start, start, start}, add), func(c markCall) bool {
		return c.deletes || !opts.FirstWins && !opts.Merge && !strings.HasPrefix(c.name, "PutIfAbsent")
	})
}

// beforeCondition calls f with the row's key before each conditional write is sent.
func beforeCondition(f func(key string)) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/CheckAndMutateRow") {
			if key := string(req.(*btpb.CheckAndMutateRowRequest).RowKey); !strings.HasPrefix(key, "!") {
				f(key)
			}
		}
		return invoker(ctx, method, req, reply, cc, opts...)
	})
}

// TestConditionalWritesMarkFirst: the mark is stored before the conditional write is sent. If a program ended between
// the two in the other order, the rollup would never include the point.
func TestConditionalWritesMarkFirst(t *testing.T) {
	add := start.Add(5*time.Hour + 17*time.Second)
	for name, opts := range conditionalSchemas {
		t.Run(name, func(t *testing.T) {
			var look atomic.Pointer[func(key string)]
			opts.Rollups = three[codec.Record]()
			s := must[*tsdb.Schema[codec.Record]](t)(tsdb.Define("r", tsdb.Key("site", "device"), codec.Records(), opts))
			hook := beforeCondition(func(key string) {
				if f := look.Load(); f != nil {
					(*f)(key)
				}
			})
			store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{DialOptions: []grpc.DialOption{hook}}, s)
			repo := s.For(store, acme)
			for _, c := range conditionalCalls(opts, add) {
				look.Store(nil)
				must[int](t)(repo.DeletePrefix(t.Context(), tsdb.AllEntities()))
				if err := repo.Put(t.Context(), roof, start, record(0)); err != nil {
					t.Fatal(err)
				}
				wipe(t, table)
				var sent atomic.Int64
				look.Store(new(func(key string) {
					for _, at := range c.times {
						if !strings.HasSuffix(key, reversed(at, opts)) {
							continue // a writer may send the points of a call one after another
						}
						sent.Add(1)
						got := marksIn(t, table)
						for _, m := range wantMarks("r", "", "berlin#roof-7", at) {
							if !slices.Contains(got, m) {
								t.Errorf("%s: marks are %q when %q is sent, want also %q", c.name, got, key, m)
							}
						}
					}
				}))
				if err := c.call(t.Context(), repo, t.TempDir()); err != nil || sent.Load() == 0 {
					t.Errorf("%s: %v, %d conditional writes", c.name, err, sent.Load())
				}
			}
		})
	}
}

// reversed returns the end of the key of a point at this time.
func reversed(at time.Time, opts tsdb.SchemaOptions) string {
	n := at.UnixNano()
	if opts.Precision == tsdb.Milliseconds {
		n = at.UnixMilli()
	}
	return fmt.Sprintf("#%019d", math.MaxInt64-n)
}

// TestSlowConditionalWritesMarkAgain: a worker processes a mark, because of its age, before the write that made it
// takes effect. The write then marks again.
func TestSlowConditionalWritesMarkAgain(t *testing.T) {
	add := start.Add(5*time.Hour + 17*time.Second)
	for name, opts := range conditionalSchemas {
		t.Run(name, func(t *testing.T) {
			var late atomic.Int64 // how far the clock is ahead of start
			var slow atomic.Pointer[func(key string)]
			opts.Rollups = three[codec.Record]()
			s := must[*tsdb.Schema[codec.Record]](t)(tsdb.Define("r", tsdb.Key("site", "device"), codec.Records(), opts))
			hook := beforeCondition(func(key string) {
				if f := slow.Load(); f != nil {
					(*f)(key)
				}
			})
			clock := func() time.Time { return start.Add(time.Duration(late.Load())) }
			store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock}, DialOptions: []grpc.DialOption{hook}}, s)
			repo := s.For(store, acme)
			for _, c := range conditionalCalls(opts, add) {
				slow.Store(nil)
				must[int](t)(repo.DeletePrefix(t.Context(), tsdb.AllEntities()))
				if err := repo.Put(t.Context(), roof, start, record(0)); err != nil {
					t.Fatal(err)
				}
				// A writer may send the points of a call at the same time. Then the last wipe also takes the marks of
				// points that are stored already, which is what a worker does.
				var mu sync.Mutex
				var last time.Time
				slow.Store(new(func(key string) {
					i := slices.IndexFunc(c.times, func(at time.Time) bool { return strings.HasSuffix(key, reversed(at, opts)) })
					if i < 0 {
						return // of a point in the bucket of another
					}
					mu.Lock()
					defer mu.Unlock()
					late.Add(int64(time.Minute))
					wipe(t, table)
					last = c.times[i]
				}))
				if err := c.call(t.Context(), repo, t.TempDir()); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				got := marksIn(t, table)
				if last.IsZero() {
					t.Errorf("%s: no conditional write", c.name)
				}
				for _, m := range wantMarks("r", "", "berlin#roof-7", last) {
					if !slices.Contains(got, m) {
						t.Errorf("%s: marks are %q when the point at %v was sent last, want also %q", c.name, got, last, m)
					}
				}
			}
		})
	}
}

// TestNothingIsWrittenWithoutItsMark: a conditional write whose mark fails is not sent, and is rejected.
func TestNothingIsWrittenWithoutItsMark(t *testing.T) {
	add := start.Add(5 * time.Hour)
	isMark := func(key string) bool { return strings.Contains(key, "!mark.") }
	for name, opts := range conditionalSchemas {
		t.Run(name, func(t *testing.T) {
			opts.Rollups = three[codec.Record]()
			s := must[*tsdb.Schema[codec.Record]](t)(tsdb.Define("r", tsdb.Key("site", "device"), codec.Records(), opts))
			store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
			repo := s.For(store, acme)
			for _, c := range conditionalCalls(opts, add) {
				if strings.Contains(c.name, "journal") {
					continue // it waits
				}
				must[int](t)(repo.DeletePrefix(t.Context(), tsdb.AllEntities()))
				conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, isMark).On(tsdbtest.MutateRows))
				err := c.call(t.Context(), repo, "")
				conn.Clear()
				if err == nil || !strings.Contains(err.Error(), "rejected") {
					t.Errorf("%s without its mark: %v, want ErrRejected", c.name, err)
				}
				for key := range rows(t, table) {
					if strings.HasPrefix(key, "acme#") && !isMark(key) {
						t.Errorf("%s without its mark has written %q", c.name, key)
					}
				}
			}
		})
	}
}

// TestSlowDeletionsMarkAgain: a worker processes the mark of a deleted point, because of its age, before the point is
// gone.
func TestSlowDeletionsMarkAgain(t *testing.T) {
	now := start
	s := readings(t, tsdb.SchemaOptions{Rollups: three[reading]()})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, s)
	repo := s.For(store, acme)
	for name, del := range map[string]func() (int, error){
		"DeleteRange":        func() (int, error) { return repo.DeleteRange(t.Context(), roof, tsdb.AllTime()) },
		"DeleteRange of all": func() (int, error) { return repo.DeleteRange(t.Context(), roof, tsdb.AllTime()) },
		"DeletePrefix":       func() (int, error) { return repo.DeletePrefix(t.Context(), tsdb.AllEntities()) },
	} {
		if err := repo.Put(t.Context(), roof, start, reading{}); err != nil {
			t.Fatal(err)
		}
		slow := tsdbtest.DelayBy(func() time.Duration { // the marks are written, the deletion is delayed
			now = now.Add(time.Minute)
			wipe(t, table)
			return 0
		})
		conn.Inject(slow.On(tsdbtest.MutateRows).Skip(1).Times(1))
		if n, err := del(); n != 1 || err != nil {
			t.Fatalf("%s: %d, %v", name, n, err)
		}
		conn.Clear()
		if got, want := marksIn(t, table), wantMarks("readings", "", "berlin#roof-7", start); !slices.Equal(got, want) {
			t.Errorf("%s: marks are %q, want %q", name, got, want)
		}
	}
}

// TestAStoredPointWithoutItsMarkIsInDoubt: if a writer's point is stored and its mark is refused, the outcome must not
// be rejected.
func TestAStoredPointWithoutItsMarkIsInDoubt(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Rollups: three[reading]()})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	w, err := store.NewWriter(tsdb.WriterOptions{Linger: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(t.Context())
	isMark := func(key string) bool { return strings.Contains(key, "!mark.") }
	conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, isMark).On(tsdbtest.MutateRows))
	out, err := s.For(store, acme).Via(w).EnqueueMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: start}})
	if !errors.Is(err, tsdb.ErrUnknown) || len(out) != 1 || out[0].State != tsdb.Unknown {
		t.Errorf("outcome %v, error %v; want unknown", out, err)
	}
	if p, err := s.For(store, acme).Get(t.Context(), roof, start); err != nil || !p.Time.Equal(start) {
		t.Errorf("the point: %v, %v", p, err)
	}
}
