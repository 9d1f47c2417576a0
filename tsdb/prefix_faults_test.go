package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// depot returns a repository with n devices of the given history length, and their entities.
func depot(t *testing.T, salts, devices, points int, name func(i int) string, timeouts tsdb.Timeouts) (*tsdb.Repository[reading], *tsdbtest.Conn, []tsdb.Entity) {
	t.Helper()
	s := readings(t, tsdb.SchemaOptions{Salts: salts})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: timeouts}}, s)
	repo := s.For(store, acme)
	var all []tsdb.Point[reading]
	var entities []tsdb.Entity
	for i := range devices {
		entities = append(entities, tsdb.NewEntity("berlin", name(i)))
		for k := range points {
			all = append(all, tsdb.Point[reading]{Entity: entities[i], Time: start.Add(time.Duration(k) * time.Second), Value: reading{float64(k)}})
		}
	}
	for batch := range slices.Chunk(all, 10_000) {
		putAll(t, repo, batch)
	}
	slices.SortFunc(entities, tsdb.Entity.Compare)
	conn.Reset()
	return repo, conn, entities
}

func number(i int) string { return fmt.Sprint("d-", i) }

func padded(i int) string { return fmt.Sprintf("d-%05d", i) }

// gather runs Under.Latest to its end.
func gather(ctx context.Context, repo *tsdb.Repository[reading], opts ...tsdb.ReadOption) (seen []tsdb.Entity, err error) {
	for p, err := range repo.Under(tsdb.AllEntities()).Latest(ctx, opts...) {
		if err != nil {
			return seen, err
		}
		seen = append(seen, p.Entity)
	}
	return seen, nil
}

// TestBigPrefixIsReadSideBySide: with a delay on each call, Under.Latest takes a fraction of the time of sequential
// calls, whatever the names of the entities, and keeps the order.
func TestBigPrefixIsReadSideBySide(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			salts int
			named func(i int) string
			most  time.Duration // for 300 devices, at 10 ms per call
		}{
			"numbers":            {0, number, 2 * time.Second},
			"padded":             {0, padded, 2 * time.Second},
			"random":             {0, func(i int) string { return fmt.Sprintf("%08x", uint32(i)*2654435761) }, 2 * time.Second},
			"in one cluster":     {0, clusteredName, 2 * time.Second},
			"all but one at end": {0, skewed, 2 * time.Second},
			"salted":             {16, number, time.Second},
		} {
			if testkit.Raced && name != "numbers" && name != "salted" {
				continue // the plain run covers the other shapes of keys
			}
			repo, conn, entities := depot(t, tt.salts, 300, 45, tt.named, tsdb.Timeouts{})
			conn.Inject(tsdbtest.Delay(10 * time.Millisecond).On(tsdbtest.ReadRows))
			begin := time.Now()
			seen, err := gather(t.Context(), repo)
			if err != nil || !slices.Equal(seen, entities) {
				t.Errorf("%s: got %d entities, %v", name, len(seen), err)
			}
			if took := time.Since(begin); took > tt.most {
				t.Errorf("%s: the call took %v, want at most %v", name, took, tt.most)
			}
			n := conn.Counts()
			t.Logf("%s: %v, %d requests, %d rows seen", name, time.Since(begin), n.Calls[tsdbtest.ReadRows], n.RowsSeen)
			if got := n.Calls[tsdbtest.ReadRows]; got > 300+40 || n.RowsSeen > 5_000 {
				t.Errorf("%s: %d requests, %d rows seen", name, got, n.RowsSeen)
			}
		}
	})
}

// TestUnderLeavesNothingBehind: if the loop ends early, at any point, all its requests have ended.
func TestUnderLeavesNothingBehind(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		for _, salts := range []int{0, 5} {
			repo, conn, entities := depot(t, salts, 300, 20, number, tsdb.Timeouts{})
			for _, leave := range []int{1, 20, 40, 100, 299} {
				conn.Inject(tsdbtest.Delay(time.Millisecond).On(tsdbtest.ReadRows))
				seen := 0
				for p, err := range repo.Under(tsdb.NewPrefix("berlin")).Latest(t.Context()) {
					if err != nil || p.Entity != entities[seen] {
						t.Fatalf("yielded %v, %v", p, err)
					}
					if seen++; seen == leave {
						break
					}
				}
				before := conn.Counts().Calls[tsdbtest.ReadRows]
				time.Sleep(time.Minute)
				synctest.Wait()
				if after := conn.Counts().Calls[tsdbtest.ReadRows]; after != before {
					t.Errorf("%d salts: left after %d, %d requests were made afterwards", salts, leave, after-before)
				}
				conn.Clear()
			}
			for range 2 { // the sequence can be used again
				if seen, err := gather(t.Context(), repo); err != nil || len(seen) != 300 {
					t.Errorf("the second use yields %d entities, %v", len(seen), err)
				}
			}
		}
	})
}

// TestUnderWaitsForItsRequests: after the loop has ended, no request is running.
func TestUnderWaitsForItsRequests(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{Salts: 20})
		var underWay atomic.Int32
		count := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			underWay.Add(1)
			defer underWay.Add(-1)
			return streamer(ctx, desc, cc, method, opts...)
		})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{count}}, s)
		repo := s.For(store, acme)
		var points []tsdb.Point[reading]
		for i := range 2000 {
			points = append(points, tsdb.Point[reading]{Entity: device("berlin", i), Time: start})
		}
		putAll(t, repo, points)
		conn.Inject(tsdbtest.Delay(time.Second).On(tsdbtest.ReadRows))
		for range repo.Under(tsdb.AllEntities()).Latest(t.Context()) {
			synctest.Wait()
			if underWay.Load() == 0 {
				t.Error("no request was running in the loop, so the test proves nothing")
			}
			break
		}
		if n := underWay.Load(); n != 0 {
			t.Errorf("%d requests are still running, want 0", n)
		}
	})
}

// TestUnderDoesNotRunAhead: while its consumer pauses, reads ahead stay bounded.
func TestUnderDoesNotRunAhead(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo, conn, _ := depot(t, 0, 1600, 33, padded, tsdb.Timeouts{Scan: 24 * time.Hour})
		seen := 0
		for range repo.Under(tsdb.AllEntities()).Latest(t.Context()) {
			if seen++; seen == 40 {
				time.Sleep(time.Hour)
				if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > 1200 {
					t.Errorf("%d requests were made for 40 entities, want at most 1200", n)
				}
				break
			}
		}
	})
}

// TestUnderThroughFaults: a broken stream is resumed. A failure is the last pair, after the points that were read
// before it.
func TestUnderThroughFaults(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, func(t *testing.T) {
		for _, salts := range []int{0, 3} {
			if testkit.Raced && salts == 0 {
				continue // salted rows take more parallel requests
			}
			repo, conn, entities := depot(t, salts, 200, 20, number, tsdb.Timeouts{Read: 2 * time.Second})
			hedge := tsdb.Hedge{After: 20 * time.Millisecond, MaxRatio: 1}
			for name, tt := range map[string]struct {
				fault tsdbtest.Fault
				want  error // nil if everything is read
			}{
				"cut":         {tsdbtest.CutStream(1, codes.Unavailable).Times(5), nil},
				"cut early":   {tsdbtest.CutStream(0, codes.Unavailable).Times(5), nil},
				"unavailable": {tsdbtest.Fail(codes.Unavailable).Times(5), nil},
				"delay":       {tsdbtest.Delay(50 * time.Millisecond).Times(3), nil},
				"outage":      {tsdbtest.Fail(codes.Unavailable).Skip(20), context.DeadlineExceeded},
				"no table":    {tsdbtest.Fail(codes.NotFound).Skip(40), tsdb.ErrNoTable},
			} {
				for i, opts := range [][]tsdb.ReadOption{nil, {hedge}, {tsdb.Concurrency(1)}} {
					if overTCP() && i > 0 && errors.Is(tt.want, context.DeadlineExceeded) {
						continue // each waits for the timeout
					}
					if tt.want != nil { // a store that has not met the entities makes enough requests
						repo, conn, entities = depot(t, salts, 200, 20, number, tsdb.Timeouts{Read: 2 * time.Second})
					}
					conn.Inject(tt.fault.On(tsdbtest.ReadRows))
					seen, err := gather(t.Context(), repo, opts...)
					conn.Clear()
					if !errors.Is(err, tt.want) || !slices.Equal(seen, entities[:len(seen)]) || tt.want == nil && len(seen) != 200 {
						t.Errorf("%s, %d salts, %v: %d entities, %v, want %v", name, salts, opts, len(seen), err, tt.want)
					}
				}
			}
			end := conn.Outage()
			if seen, err := gather(t.Context(), repo); !errors.Is(err, context.DeadlineExceeded) || len(seen) > 0 {
				t.Errorf("outage: entities %v, error %v", seen, err)
			}
			end()
		}
	})
}

// TestUnderEndsWithItsContext: the sequence ends with its context, within a page and between two pages.
func TestUnderEndsWithItsContext(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		for _, salts := range []int{0, 3} {
			repo, conn, _ := depot(t, salts, 200, 3, number, tsdb.Timeouts{Scan: time.Minute})
			ctx, cancel := context.WithCancel(t.Context())
			seen := 0
			var last error
			for _, err := range repo.Under(tsdb.AllEntities()).Latest(ctx) {
				if last = err; err == nil {
					seen++
				}
				cancel()
			}
			if seen != 1 || !errors.Is(last, context.Canceled) {
				t.Errorf("%d points after the context was cancelled, then %v", seen, last)
			}
			conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows).Skip(4))
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := gather(short, repo); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("past its deadline: %v, want DeadlineExceeded", err)
			}
			cancel()
			conn.Clear()
			begin := time.Now()
			for _, err := range repo.Under(tsdb.AllEntities()).Entities(t.Context(), tsdb.AllTime()) {
				if last = err; err != nil {
					break
				}
				time.Sleep(time.Second)
			}
			if !errors.Is(last, context.DeadlineExceeded) || time.Since(begin) > time.Minute+time.Second {
				t.Errorf("slow consumer: error %v after %v, want the timeout of scans", last, time.Since(begin))
			}
		}
	})
}

func TestUnderRefusesWhatItCannotRead(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	for _, p := range []tsdb.Prefix{{}, tsdb.NewPrefix(), tsdb.NewPrefix("berlin", "d-1"), tsdb.NewPrefix(""), tsdb.NewPrefix("\xff")} {
		n := 0
		for e, err := range repo.Under(p).Entities(t.Context(), tsdb.AllTime()) {
			if n++; !errors.Is(err, tsdb.ErrInvalid) {
				t.Errorf("Entities(%q) yields %v, %v", p, e, err)
			}
		}
		if n != 1 {
			t.Errorf("Entities(%q) yields %d pairs, want the error", p, n)
		}
	}
	for _, err := range repo.Under(tsdb.AllEntities()).Latest(t.Context(), tsdb.Concurrency(-1)) {
		if !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("Concurrency(-1): %v, want ErrInvalid", err)
		}
	}
	if calls := conn.Counts().Calls; len(calls) > 0 {
		t.Errorf("requests were sent: %v", calls)
	}
}

// clusteredName gives most devices names with a common beginning, so that cutting the whole range cannot separate them.
func clusteredName(i int) string {
	switch {
	case i < 34:
		return fmt.Sprintf("a-%d", i)
	case i == 34:
		return "z"
	}
	return fmt.Sprintf("mmmmmmmmmmmm-%d", i)
}

// skewed gives one device a different name from all others, whose long names differ only at the end.
func skewed(i int) string {
	if i == 0 {
		return "a"
	}
	return fmt.Sprint("zzzzzzzzzzzzzzzzzzzz-", i)
}
