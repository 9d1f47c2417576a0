package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// slow delays responses: the engine has finished before the store receives them.
type slow struct {
	mu   sync.Mutex
	wait map[string]time.Duration // by method
}

// next sets the delay of the response to the next call of a method.
func (s *slow) next(m tsdbtest.Method, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait[string(m)] = d
}

func (s *slow) take(method string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	const service = "/google.bigtable.v2.Bigtable/"
	d := s.wait[method[min(len(service), len(method)):]]
	delete(s.wait, method[min(len(service), len(method)):])
	return d
}

func (s *slow) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			d := s.take(method)
			err := invoker(ctx, method, req, reply, cc, opts...)
			time.Sleep(d)
			return err
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			d := s.take(method)
			stream, err := streamer(ctx, desc, cc, method, opts...)
			return &slowStream{ClientStream: stream, wait: d}, err
		}),
	}
}

type slowStream struct {
	grpc.ClientStream
	wait time.Duration
}

func (s *slowStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	time.Sleep(s.wait)
	s.wait = 0
	return err
}

// slowStore returns a store with a cache and with responses that can be delayed.
func slowStore(t *testing.T) (*tsdb.Repository[reading], *tsdbtest.Conn, *slow) {
	t.Helper()
	s := readings(t, tsdb.SchemaOptions{})
	late := &slow{wait: map[string]time.Duration{}}
	opts := cached
	opts.DialOptions = late.options()
	store, conn := tsdbtest.Open(t, opts, s)
	return s.For(store, acme), conn, late
}

// TestAReadUnderWayDoesNotUndoAWrite: a read that started before a write does not put the old point back into the
// cache, whichever way was written.
func TestAReadUnderWayDoesNotUndoAWrite(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(ctx context.Context, repo *tsdb.Repository[reading]) error
		want  float64
	}{
		"Put": {func(ctx context.Context, repo *tsdb.Repository[reading]) error {
			return repo.Put(ctx, roof, start.Add(time.Second), reading{2})
		}, 2},
		"the same time": {func(ctx context.Context, repo *tsdb.Repository[reading]) error {
			return repo.Put(ctx, roof, start, reading{2})
		}, 2},
		"PutMany": {func(ctx context.Context, repo *tsdb.Repository[reading]) error {
			_, err := repo.PutMany(ctx, []tsdb.Point[reading]{{Entity: roof, Time: start.Add(time.Second), Value: reading{2}}})
			return err
		}, 2},
		"PutIfAbsent": {func(ctx context.Context, repo *tsdb.Repository[reading]) error {
			_, err := repo.PutIfAbsent(ctx, roof, start.Add(time.Second), reading{2})
			return err
		}, 2},
		"writer": {func(ctx context.Context, repo *tsdb.Repository[reading]) error {
			w, err := repo.Store().NewWriter(tsdb.WriterOptions{})
			if err != nil {
				return err
			}
			return errors.Join(repo.Via(w).Enqueue(ctx, roof, start.Add(time.Second), reading{2}), w.Close(ctx))
		}, 2},
		"Delete": {func(ctx context.Context, repo *tsdb.Repository[reading]) error { return repo.Delete(ctx, roof, start) }, 0},
		"DeleteRange of all": {func(ctx context.Context, repo *tsdb.Repository[reading]) error {
			_, err := repo.DeleteRange(ctx, roof, tsdb.AllTime())
			return err
		}, 0},
		"DeletePrefix": {func(ctx context.Context, repo *tsdb.Repository[reading]) error {
			_, err := repo.DeletePrefix(ctx, tsdb.AllEntities())
			return err
		}, 0},
	} {
		longBubble(t, func(t *testing.T) {
			repo, conn, late := slowStore(t)
			putAll(t, repo, []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{1}}, {Entity: roof, Time: start.Add(-time.Hour), Value: reading{0}}})
			late.next(tsdbtest.ReadRows, time.Second)
			var wg sync.WaitGroup
			early := func() {
				if p, err := repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Minute)); err != nil || p.Value.TempC != 1 {
					t.Errorf("%s: a caller before the write: %v, %v", name, p, err)
				}
			}
			wg.Go(early)
			synctest.Wait()
			if err := tt.write(t.Context(), repo); err != nil {
				t.Fatal(err)
			}
			for _, when := range []string{"while that read is under way", "after it"} {
				p, err := repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Minute))
				want, wantErr := repo.Latest(t.Context(), roof)
				if !errors.Is(err, wantErr) || p != want || err == nil && p.Value.TempC != tt.want {
					t.Errorf("%s: a caller after the write, %s: got %v, %v; want %v, %v", name, when, p, err, want, wantErr)
				}
				wg.Wait()
			}
			if s := cacheOf(t, repo.Store()).Stats(); s.Misses != 2 || s.Hits != 1 || s.Shared != 0 {
				t.Errorf("%s: %+v after %d reads", name, s, conn.Counts().Calls[tsdbtest.ReadRows])
			}
		})
	}
}

// TestWritesOfOnePointAtOnce: after two overlapping writes of one point, the cache serves the one that the table holds,
// whichever response came first.
func TestWritesOfOnePointAtOnce(t *testing.T) {
	for _, first := range []time.Duration{time.Second, 3 * time.Second} {
		for _, known := range []bool{true, false} {
			longBubble(t, func(t *testing.T) {
				repo, _, late := slowStore(t)
				ctx := t.Context()
				putAll(t, repo, []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{1}}})
				if known {
					_, _ = repo.Latest(ctx, roof, tsdb.MaxStale(time.Hour))
				}
				var wg sync.WaitGroup
				for n, d := range []time.Duration{first, 2 * time.Second} {
					late.next(tsdbtest.MutateRow, d)
					wg.Go(func() {
						if err := repo.Put(ctx, roof, start, reading{float64(10 + n)}); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				wg.Wait()
				want, _ := repo.Latest(ctx, roof)
				if p, err := repo.Latest(ctx, roof, tsdb.MaxStale(time.Hour)); err != nil || p != want || want.Value.TempC != 11 {
					t.Errorf("first response after %v, cached before: %v: got %v, %v; want %v", first, known, p, err, want)
				}
			})
		}
	}
}

// TestAThousandCallersShareOneRead: a thousand callers share one read. A caller that leaves early, or allows less
// staleness, does not affect the others.
func TestAThousandCallersShareOneRead(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo, conn, late := slowStore(t)
		putAll(t, repo, []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{1}}})
		conn.Reset()
		var wg sync.WaitGroup
		ask := func(ctx context.Context, want error, opt tsdb.MaxStale) {
			wg.Go(func() {
				if p, err := repo.Latest(ctx, roof, opt); !errors.Is(err, want) || want == nil && p.Value.TempC != 1 {
					t.Errorf("got %v, %v; want %v", p, err, want)
				}
			})
		}
		late.next(tsdbtest.ReadRows, time.Second)
		leaver, leave := context.WithCancel(t.Context())
		ask(leaver, context.Canceled, tsdb.MaxStale(time.Minute)) // the first caller, who started the read
		synctest.Wait()
		for range 500 {
			ask(t.Context(), nil, tsdb.MaxStale(time.Minute))
		}
		time.Sleep(100 * time.Millisecond)
		leave()
		for range 498 {
			ask(t.Context(), nil, tsdb.MaxStale(100*time.Millisecond))
		}
		ended, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		ask(ended, context.DeadlineExceeded, tsdb.MaxStale(time.Minute))
		wg.Wait()
		if s := cacheOf(t, repo.Store()).Stats(); conn.Counts().Calls[tsdbtest.ReadRows] != 1 || s.Misses != 1 || s.Shared != 999 || s.Hits != 0 {
			t.Errorf("%d reads, want 1; stats %+v", conn.Counts().Calls[tsdbtest.ReadRows], s)
		}
		wg.Go(func() { // LatestMany shares with Latest; the stricter call reads the table
			late.next(tsdbtest.ReadRows, time.Second)
			_, _ = latestMany(t.Context(), repo, []tsdb.Entity{roof}, tsdb.MaxStale(1))
		})
		time.Sleep(100 * time.Millisecond)
		ask(t.Context(), nil, tsdb.MaxStale(99*time.Millisecond))
		wg.Wait()
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 3 {
			t.Errorf("%d reads, want 3", n)
		}
	})
}

// TestAReadThatFails: all callers that wait for a failed read get its error, and later callers do not. The store's
// timeout bounds the read, not a caller's.
func TestAReadThatFails(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo, conn, _ := slowStore(t)
		putAll(t, repo, []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{1}}})
		conn.Reset()
		var wg sync.WaitGroup
		all := func(n int, want error, code codes.Code) {
			t.Helper()
			for range n {
				wg.Go(func() {
					_, err := repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Minute))
					if err == nil || errors.Is(err, tsdb.ErrNotFound) || want != nil && !errors.Is(err, want) {
						t.Errorf("error %v, want %v %v", err, want, code)
					}
				})
			}
			wg.Wait()
		}
		conn.Inject(tsdbtest.Delay(time.Second).On(tsdbtest.ReadRows))
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows))
		all(100, nil, codes.PermissionDenied)
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 1 {
			t.Errorf("%d refused reads, want 1", n)
		}
		conn.Clear()
		latest(t, conn, repo, roof, 1, 1, tsdb.MaxStale(time.Minute))
		time.Sleep(2 * time.Minute)
		markedAfresh(t, repo)
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows))
		begin := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wg.Go(func() { // starts the read
			if _, err := repo.Latest(short, roof, tsdb.MaxStale(time.Minute)); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
				t.Errorf("error %v after %v", err, time.Since(begin))
			}
		})
		synctest.Wait()
		all(10, context.DeadlineExceeded, codes.OK)
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("the read took %v, want the store's read timeout", took)
		}
	})
}

// TestCloseEndsWhatIsUnderWay: Close ends waiting callers with ErrClosed and leaves no goroutine (the bubble would not
// end).
func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo, conn, _ := slowStore(t)
		putAll(t, repo, []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{1}}})
		_, _ = repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Minute))
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows))
		begin := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := repo.Latest(t.Context(), device("berlin", 1), tsdb.MaxStale(time.Minute)); !errors.Is(err, tsdb.ErrClosed) {
					t.Errorf("waiting caller got %v, want ErrClosed", err)
				}
			})
		}
		synctest.Wait()
		cache := cacheOf(t, repo.Store())
		if err := repo.Store().Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if _, err := repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Minute)); !errors.Is(err, tsdb.ErrClosed) || time.Since(begin) != 0 {
			t.Errorf("after Close: error %v after %v, want ErrClosed at once", err, time.Since(begin))
		}
		if s := cache.Stats(); s.Entries != 0 {
			t.Errorf("after Close: stats %+v", s)
		}
	})
}

// history is an entity's points after each write, by time, and which program wrote.
type history []struct {
	at     time.Time
	points map[int]string
	write  func(points map[int]string)
	own    bool
}

func (h history) add(own bool, write func(map[int]string)) history {
	points := map[int]string{}
	if len(h) > 0 {
		points = maps.Clone(h[len(h)-1].points)
	}
	write(points)
	return append(h, history{{time.Now(), points, write, own}}...)
}

// answers returns all values that a read may return now: the newest point as of any time within the staleness, with all
// writes of this store.
func (h history) answers(stale time.Duration) map[string]bool {
	out := map[string]bool{}
	for i := len(h) - 1; i >= 0; i-- {
		points := maps.Clone(h[i].points)
		for _, later := range h[i+1:] {
			if later.own {
				later.write(points)
			}
		}
		newest := -1
		for at := range points {
			newest = max(newest, at)
		}
		out[points[newest]] = true // "" means no point
		if h[i].at.Before(time.Now().Add(-stale)) {
			break
		}
	}
	return out
}

// TestCacheEqualsAModel: two tenants and two datasets share all names; this store and another program write; the clock
// moves.
func TestCacheEqualsAModel(t *testing.T) {
	for _, seed := range some(0, []uint64{0, 1, 2, 3}) {
		longBubble(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			var datasets []tsdb.Dataset
			var schemas []*tsdb.Schema[string]
			for _, name := range []string{"r", "r2"} {
				s := must[*tsdb.Schema[string]](t)(tsdb.Define(name, tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{Salts: []int{0, 3}[seed%2], Retention: d90}))
				schemas, datasets = append(schemas, s), append(datasets, s)
			}
			store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 12, MaxAge: time.Hour}}}, datasets...)
			client, _ := tsdbtest.Clients(t, conn)
			behind := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{}))
			defer behind.Close()
			w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{Linger: -1}))
			defer func() { _ = w.Close(context.Background()) }()
			ctx, begin := t.Context(), time.Now()
			model := map[string]history{}
			stored := 0
			for n := range 4000 {
				id := tenant.MustParse([]string{"a", "ab"}[rnd.IntN(2)])
				s := schemas[rnd.IntN(2)]
				e := device([]string{"b", "b2"}[rnd.IntN(2)], rnd.IntN(2))
				name := fmt.Sprint(id, s.Name(), e)
				if model[name] == nil {
					model[name] = history{}.add(false, func(map[int]string) {})
				}
				own := rnd.IntN(3) > 0
				repo := s.For(store, id)
				if !own {
					repo = s.For(behind, id)
				}
				sec := rnd.IntN(20) + n/100
				at, v := begin.Add(time.Duration(sec)*time.Second), fmt.Sprint(name, " ", n)
				put := func(points map[int]string) { points[sec] = v }
				var err error
				switch rnd.IntN(14) {
				case 0:
					err = repo.Put(ctx, e, at, v)
				case 1:
					_, err = repo.PutMany(ctx, []tsdb.Point[string]{{Entity: e, Time: at, Value: v + "x"}, {Entity: e, Time: at, Value: v}})
				case 2:
					var first bool
					if first, err = repo.PutIfAbsent(ctx, e, at, v); !first {
						put = func(map[int]string) {}
					}
				case 3:
					err = repo.Delete(ctx, e, at)
					put = func(points map[int]string) { delete(points, sec) }
				case 4:
					_, err = repo.DeleteRange(ctx, e, tsdb.Since(at))
					put = func(points map[int]string) {
						maps.DeleteFunc(points, func(at int, _ string) bool { return at >= sec })
					}
				case 5:
					own = true
					_, err = s.For(store, id).Via(w).EnqueueMany(ctx, []tsdb.Point[string]{{Entity: e, Time: at, Value: v}})
				case 6:
					time.Sleep(time.Duration(rnd.IntN(20)) * time.Second)
					continue
				default:
					stale := time.Duration(1+rnd.IntN(60))*time.Second - 1
					var p tsdb.Point[string]
					if rnd.IntN(2) == 0 {
						p, err = s.For(store, id).Latest(ctx, e, tsdb.MaxStale(stale))
					} else {
						answers, _ := latestMany(ctx, s.For(store, id), []tsdb.Entity{e}, tsdb.MaxStale(stale))
						p, err = answers[0].Point, answers[0].Err
					}
					if may := model[name].answers(stale); !may[p.Value] || errors.Is(err, tsdb.ErrNotFound) != (p.Value == "") || err != nil && p.Value != "" {
						t.Fatalf("seed %d, call %d: %s answers %q, %v with staleness %v; it may answer %v", seed, n, name, p.Value, err, stale, may)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				stored++
				model[name] = model[name].add(own, put)
			}
			if got := cacheOf(t, store).Stats(); got.Hits < 300 || got.Entries == 0 || got.Entries > 12 {
				t.Errorf("seed %d: %+v after %d writes", seed, got, stored)
			}
		})
	}
}
