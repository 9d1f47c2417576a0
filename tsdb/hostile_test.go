package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// through opens a store whose connection also has the interceptors in opts, after the store's own.
func through(t *testing.T, timeouts tsdb.Timeouts, datasets []tsdb.Dataset, opts ...grpc.DialOption) *tsdb.Store {
	t.Helper()
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: timeouts}, DialOptions: opts}, datasets...)
	return store
}

// onStream calls recv with each message that a stream of the method receives.
func onStream(method string, recv func(m any) error) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := streamer(ctx, desc, cc, name, opts...)
		if err != nil || !strings.HasSuffix(name, "/"+method) {
			return s, err
		}
		return &hooked{s, recv}, nil
	})
}

type hooked struct {
	grpc.ClientStream
	recv func(any) error
}

func (h *hooked) RecvMsg(m any) error {
	if err := h.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	return h.recv(m)
}

// TestRowsOfAnotherRangeAreRefused: if a service or proxy returns other rows than requested, the store does not decode,
// compare or delete anything.
func TestRowsOfAnotherRangeAreRefused(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	first := tsdb.MustDefine("first", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{FirstWins: true})
	var lie atomic.Pointer[string]
	var wrote atomic.Int32
	store := through(t, tsdb.Timeouts{}, []tsdb.Dataset{s, first},
		onStream("ReadRows", func(m any) error {
			if key := lie.Load(); key != nil {
				for _, c := range m.(*btpb.ReadRowsResponse).Chunks {
					if len(c.RowKey) > 0 {
						c.RowKey = []byte(*key)
					}
				}
			}
			return nil
		}),
		onStream("MutateRows", func(any) error {
			wrote.Add(1)
			return nil
		}))
	repo, firsts := s.For(store, acme), first.For(store, acme)
	if err := errors.Join(repo.Put(t.Context(), roof, start, reading{1}), firsts.Put(t.Context(), roof, start, reading{1}),
		repo.Put(t.Context(), tsdb.NewEntity("hamburg", "roof-1"), start, reading{1})); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"acme2#readings#berlin#roof-7#9223372036854775807", "acme#readings2#berlin#roof-7#9223372036854775807",
		"acme#readings#berlin#roof-8#7456146436854775807", "!format",
	} {
		lie.Store(&key)
		for name, call := range map[string]func() error{
			"Latest": func() error { _, err := repo.Latest(t.Context(), roof); return err },
			"Get":    func() error { _, err := repo.Get(t.Context(), roof, start); return err },
			"AsOf":   func() error { _, err := repo.AsOf(t.Context(), roof, start); return err },
			"LatestN": func() error {
				points, err := repo.LatestN(t.Context(), roof, 5)
				if points != nil {
					t.Errorf("LatestN returns %v", points)
				}
				return err
			},
			"LatestMany": func() error {
				answers, err := latestMany(t.Context(), repo, []tsdb.Entity{roof}, tsdb.Hedge{After: time.Hour, MaxRatio: 1})
				if answers[0].Point != (tsdb.Point[reading]{Entity: roof}) {
					t.Errorf("LatestMany returns %v", answers)
				}
				return err
			},
			"Under.Latest": func() error {
				for p, err := range repo.Under(tsdb.NewPrefix("hamburg")).Latest(t.Context()) {
					if err != nil {
						return err
					}
					t.Errorf("Under.Latest yields %v", p)
				}
				return nil
			},
			"Entities": func() error {
				for e, err := range repo.Under(tsdb.NewPrefix("hamburg")).Entities(t.Context(), tsdb.AllTime()) {
					if err != nil {
						return err
					}
					t.Errorf("Entities yields %v", e)
				}
				return nil
			},
			"Range": func() error {
				for p, err := range repo.Range(t.Context(), roof, tsdb.AllTime()) {
					if err != nil {
						return err
					}
					t.Errorf("Range yields %v", p)
				}
				return nil
			},
			"Page": func() error {
				page, err := repo.Page(t.Context(), roof, tsdb.AllTime(), 5, "")
				if page.Points != nil || page.Next != "" {
					t.Errorf("Page returns %v", page)
				}
				return err
			},
			"Put, first wins":    func() error { return firsts.Put(t.Context(), roof, start, reading{1}) },
			"DeleteRange of all": func() error { _, err := repo.DeleteRange(t.Context(), roof, tsdb.AllTime()); return err },
			"Verify":             func() error { return store.Verify(t.Context(), s) },
		} {
			if name == "Verify" && key == "!format" {
				continue
			}
			if err := call(); !errors.Is(err, tsdb.ErrForeignRow) {
				t.Errorf("%s whose response contains the row %q: %v, want ErrForeignRow", name, key, err)
			}
		}
	}
	other := key(roof, start.Add(time.Hour)) // of the same entity, at a time that was not requested
	lie.Store(&other)
	if p, err := repo.Get(t.Context(), roof, start); !errors.Is(err, tsdb.ErrForeignRow) {
		t.Errorf("Get whose response has another time = %v, %v; want ErrForeignRow", p, err)
	}
	if n, err := repo.DeleteRange(t.Context(), roof, tsdb.Until(start.Add(1))); !errors.Is(err, tsdb.ErrForeignRow) {
		t.Errorf("DeleteRange whose response has another time = %d, %v; want ErrForeignRow", n, err)
	}
	if wrote.Load() > 0 {
		t.Error("rows of another range were deleted")
	}
}

// TestEntryWithoutAnAnswer: the service omits one entry of a bulk write from its response.
func TestEntryWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		left := 0
		store := through(t, tsdb.Timeouts{Write: faultTimeout()}, []tsdb.Dataset{s}, onStream("MutateRows", func(m any) error {
			if left--; left >= 0 {
				res := m.(*btpb.MutateRowsResponse)
				res.Entries = res.Entries[:len(res.Entries)-1]
			}
			return nil
		}))
		points := []tsdb.Point[reading]{{Entity: roof, Time: start}, {Entity: roof, Time: start.Add(1)}}
		left = 1
		outcomes, err := s.For(store, acme).PutMany(t.Context(), points)
		if err != nil || outcomes[0].Attempts != 1 || outcomes[1].Attempts != 2 {
			t.Errorf("omitted once: outcomes %+v, error %v; want it written again", outcomes, err)
		}
		left = 1 << 30
		outcomes, err = s.For(store, acme).PutMany(t.Context(), points)
		if !errors.Is(err, tsdb.ErrUnknown) || outcomes[0].State != tsdb.Stored || outcomes[1].State != tsdb.Unknown {
			t.Errorf("omitted always: outcomes %+v, error %v; want it unknown", outcomes, err)
		}
	})
}

// TestStreamThatBreaksWithARefusal: if a bulk stream breaks, entries without a response are unknown, whatever code
// ended the stream.
func TestStreamThatBreaksWithARefusal(t *testing.T) {
	for _, code := range []codes.Code{codes.PermissionDenied, codes.NotFound, codes.FailedPrecondition} {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		conn.Inject(tsdbtest.CutStream(2, code).On(tsdbtest.MutateRows))
		var points []tsdb.Point[reading]
		for i := range 5 {
			points = append(points, tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i))})
		}
		outcomes, _ := s.For(store, acme).PutMany(t.Context(), points)
		there := rows(t, table)
		for i, o := range outcomes {
			confirm(t, fmt.Sprintf("%v, point %d", code, i), o.State, []tsdb.State{tsdb.Stored, tsdb.Unknown}[min(i/2, 1)], there[key(roof, points[i].Time)] != nil)
		}
	}
}

// TestTheEndOfTimeInTheMiddle: points whose request was sent before the time ended are unknown, the others are
// rejected.
func TestTheEndOfTimeInTheMiddle(t *testing.T) {
	testkit.Plain(t)
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		points := make([]tsdb.Point[reading], 20_001)
		for i := range points {
			points[i] = tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i))}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRows).Times(1))
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.MutateRows).Skip(2)) // the first request is retried, the second hangs
		outcomes, err := s.For(store, acme).PutMany(ctx, points)
		if outcomes[0].State != tsdb.Stored || outcomes[10_000].State != tsdb.Unknown || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("outcomes %+v and %+v, error %v", outcomes[0], outcomes[10_000], err)
		}
		if o := outcomes[20_000]; o.State == tsdb.Stored || o.State == tsdb.Rejected && o.Attempts > 0 {
			t.Errorf("the last outcome is %+v; want unknown, or rejected without an attempt", o)
		}
		conn.Clear()
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.MutateRows))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		outcomes, _ = s.For(store, acme).PutMany(short, points)
		if outcomes[0].State != tsdb.Unknown || outcomes[20_000].State != tsdb.Rejected || outcomes[20_000].Attempts != 0 {
			t.Errorf("outcomes %+v and %+v; want the first unknown and the last never sent", outcomes[0], outcomes[20_000])
		}
	})
}

// TestTheContextsErrorsShow: errors wrap the context's error, so that callers recognise their own cancellation.
func TestTheContextsErrorsShow(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		conn.Inject(tsdbtest.Delay(time.Hour))
		for name, call := range map[string]func(ctx context.Context) error{
			"Put":         func(ctx context.Context) error { return repo.Put(ctx, roof, start, reading{}) },
			"PutIfAbsent": func(ctx context.Context) error { _, err := repo.PutIfAbsent(ctx, roof, start, reading{}); return err },
			"PutMany": func(ctx context.Context) error {
				_, err := repo.PutMany(ctx, []tsdb.Point[reading]{{Entity: roof, Time: start}})
				return err
			},
			"Latest": func(ctx context.Context) error { _, err := repo.Latest(ctx, roof); return err },
			"Page":   func(ctx context.Context) error { _, err := repo.Page(ctx, roof, tsdb.AllTime(), 1, ""); return err },
			"Range": func(ctx context.Context) error {
				for _, err := range repo.Range(ctx, roof, tsdb.AllTime()) {
					return err
				}
				return nil
			},
			"DeleteRange of all": func(ctx context.Context) error { _, err := repo.DeleteRange(ctx, roof, tsdb.AllTime()); return err },
			"Ensure":             func(ctx context.Context) error { return store.Ensure(ctx, s) },
			"Verify":             func(ctx context.Context) error { return store.Verify(ctx, s) },
			"Ping":               store.Ping,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s past its deadline: %v, want DeadlineExceeded", name, err)
			}
			cancel()
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if err := call(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s cancelled: %v, want Canceled", name, err)
			}
			begin := time.Now()
			if err := call(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 6*time.Minute {
				t.Errorf("%s without a deadline of its own: %v after %v, want the store's timeout", name, err, time.Since(begin))
			}
		}
	})
}

// TestServiceSaysWhen: plain and conditional writes wait as long as the service asks, whatever its code.
func TestServiceSaysWhen(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, func(t *testing.T) {
		st, err := grpcstatus.New(codes.FailedPrecondition, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		s := readings(t, tsdb.SchemaOptions{})
		store := through(t, tsdb.Timeouts{}, []tsdb.Dataset{s}, grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if left--; left >= 0 {
					return st.Err()
				}
				return invoker(ctx, method, req, reply, cc, opts...)
			}))
		repo := s.For(store, acme)
		for name, put := range map[string]func() error{
			"Put":         func() error { return repo.Put(t.Context(), roof, start, reading{}) },
			"PutIfAbsent": func() error { _, err := repo.PutIfAbsent(t.Context(), roof, start.Add(1), reading{}); return err },
		} {
			left = 1
			begin := time.Now()
			if err := put(); err != nil || time.Since(begin) < 3*time.Second {
				t.Errorf("%s: error %v after %v, want success after the 3s that the service asked for", name, err, time.Since(begin))
			}
		}
	})
}

// TestRefusalsAreNotRepeated: a request that the service refuses permanently is sent once.
func TestRefusalsAreNotRepeated(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	conn.Inject(tsdbtest.Fail(codes.PermissionDenied))
	repo := s.For(store, acme)
	_ = repo.Put(t.Context(), roof, start, reading{})
	_, _ = repo.PutIfAbsent(t.Context(), roof, start, reading{})
	_, _ = repo.PutMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: start}})
	for m, n := range conn.Counts().Calls {
		if n != 1 {
			t.Errorf("%s was called %d times, want 1", m, n)
		}
	}
}

// TestTimeoutsAreTold: ranges have the timeout of scans, other reads the timeout of reads.
func TestTimeoutsAreTold(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: time.Second, Scan: time.Minute}}}, s)
		conn.Inject(tsdbtest.Delay(10 * time.Second).On(tsdbtest.ReadRows))
		for _, err := range s.For(store, acme).Range(t.Context(), roof, tsdb.AllTime()) {
			t.Errorf("Range: %v, want no pairs", err)
		}
		if _, err := s.For(store, acme).Latest(t.Context(), roof); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Latest: %v, want DeadlineExceeded", err)
		}
	})
}

// TestLookThatFails: a first-wins write that finds a row and cannot read it does not know whether the row is its own.
func TestLookThatFails(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{FirstWins: true})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	if err := repo.Put(t.Context(), roof, start, reading{1}); err != nil {
		t.Fatal(err)
	}
	conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows))
	for _, v := range []float64{1, 2} {
		if err := repo.Put(t.Context(), roof, start, reading{v}); !errors.Is(err, tsdb.ErrUnknown) {
			t.Errorf("Put of %v: %v, want ErrUnknown", v, err)
		}
	}
	conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1))
	if _, err := repo.PutIfAbsent(t.Context(), roof, start.Add(1), reading{1}); !errors.Is(err, tsdb.ErrUnknown) {
		t.Errorf("PutIfAbsent whose response and check are lost: %v, want ErrUnknown", err)
	}
}

// TestGuardedTwice: interceptors that are on a connection twice still report correct outcomes.
func TestGuardedTwice(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	n := 0
	store := through(t, tsdb.Timeouts{}, []tsdb.Dataset{s}, append(tsdb.DialOptions(), grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if n++; n == 1 {
				return grpcstatus.Error(codes.Unavailable, "once")
			}
			return invoker(ctx, method, req, reply, cc, opts...)
		}))...)
	n = 0
	if err := s.For(store, acme).Put(t.Context(), roof, start, reading{}); err != nil {
		t.Errorf("Put: %v, want a retry that succeeds", err)
	}
	if outcomes, err := s.For(store, acme).PutMany(t.Context(), points(3)); err != nil || outcomes[2].Attempts != 1 {
		t.Errorf("PutMany: %v, %v", outcomes, err)
	}
}

// TestRowIsNeverTwiceInARequest: the service may apply the entries of a request in any order.
func TestRowIsNeverTwiceInARequest(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	seen := 0
	spy := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		cs, err := streamer(ctx, desc, cc, method, opts...)
		return &spied{cs, func(m any) {
			req, ok := m.(*btpb.MutateRowsRequest)
			if !ok {
				return
			}
			keys := map[string]bool{}
			for _, e := range req.Entries {
				if keys[string(e.RowKey)] {
					t.Errorf("row %q is twice in a request", e.RowKey)
				}
				keys[string(e.RowKey)] = true
				seen++
			}
		}}, err
	})
	store := through(t, tsdb.Timeouts{}, []tsdb.Dataset{s}, spy)
	var points []tsdb.Point[reading]
	for i := range 30 {
		points = append(points, tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i % 7)), Value: reading{float64(i)}})
	}
	if _, err := s.For(store, acme).PutMany(t.Context(), points); err != nil || seen != 7 {
		t.Errorf("%d rows sent, %v; want the last point of each time", seen, err)
	}
}

type spied struct {
	grpc.ClientStream
	send func(any)
}

func (s *spied) SendMsg(m any) error {
	s.send(m)
	return s.ClientStream.SendMsg(m)
}

// TestOnePoisonedRowDoesNotDelayTheOthers: one row that the service always rejects does not delay the others.
func TestOnePoisonedRowDoesNotDelayTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout()}}}, s)
		conn.Inject(tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return strings.Contains(key, "poison") }))
		good, bad := tsdb.NewEntity("berlin", "good"), tsdb.NewEntity("berlin", "poison")
		outcomes, _ := s.For(store, acme).PutMany(t.Context(), []tsdb.Point[reading]{{Entity: bad, Time: start}, {Entity: good, Time: start, Value: reading{1}}, {Entity: good, Time: start, Value: reading{2}}})
		if outcomes[0].State != tsdb.Unknown || outcomes[1].State != tsdb.Stored || outcomes[2].State != tsdb.Stored {
			t.Errorf("outcomes are %+v", outcomes)
		}
		if p, err := s.For(store, acme).Latest(t.Context(), good); err != nil || p.Value.TempC != 2 {
			t.Errorf("Latest = %v, %v", p, err)
		}
	})
}

// TestZeroValuesAreRefused: nothing panics on zero or nil values, and no request is sent.
func TestZeroValuesAreRefused(t *testing.T) {
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, readings(t, tsdb.SchemaOptions{}))
	var none *tsdb.Schema[reading]
	for name, repo := range map[string]*tsdb.Repository[reading]{
		"zero schema": new(tsdb.Schema[reading]).For(store, acme), "nil schema": none.For(store, acme),
		"zero repository": {}, "nil repository": nil,
		"zero store": readings(t, tsdb.SchemaOptions{}).For(new(tsdb.Store), acme), "nil store": readings(t, tsdb.SchemaOptions{}).For(nil, acme),
	} {
		if err := repo.Put(t.Context(), tsdb.Entity{}, start, reading{}); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: Put: %v, want ErrInvalid", name, err)
		}
		if _, err := repo.Latest(t.Context(), roof); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: Latest: %v, want ErrInvalid", name, err)
		}
		if _, err := repo.PutMany(t.Context(), nil); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: PutMany of nothing: %v, want ErrInvalid", name, err)
		}
		if _, err := repo.DeletePrefix(t.Context(), tsdb.AllEntities()); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%s: DeletePrefix: %v, want ErrInvalid", name, err)
		}
	}
	for name, d := range map[string]tsdb.Dataset{"zero": new(tsdb.Schema[reading]), "nil": none} {
		if err := errors.Join(store.Ensure(t.Context(), d)); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("Ensure of a %s schema: %v, want ErrInvalid", name, err)
		}
	}
	if err := new(tsdb.Store).Ping(t.Context()); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("Ping of a zero store: %v, want ErrInvalid", err)
	}
	if calls := conn.Counts().Calls; len(calls) > 0 {
		t.Errorf("requests were sent: %v", calls)
	}
}

// TestCellWithAnotherTime: a cell with another time than its row's never hides the point.
func TestCellWithAnotherTime(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	m := bigtable.NewMutation()
	m.Set("keep", "p:json", bigtable.Time(start.Add(time.Hour)), []byte(`{`))
	apply(t, table, key(roof, start), m)
	repo := s.For(store, acme)
	if err := repo.Put(t.Context(), roof, start, reading{1}); err != nil {
		t.Fatal(err)
	}
	if p, err := repo.Get(t.Context(), roof, start); err != nil || p.Value.TempC != 1 {
		t.Errorf("Get = %v, %v; want the point that Put stored", p, err)
	}
}
