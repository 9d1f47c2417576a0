package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/internal/proof/calls"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// limiter returns a limiter without limits.
func limiter(t testing.TB) *limit.Limiter {
	t.Helper()
	return must[*limit.Limiter](t)(limit.New(limit.Table{}, limit.Options{}))
}

// restrict sets the limits of all tenants.
func restrict(t testing.TB, l *limit.Limiter, limits limit.Limits) {
	t.Helper()
	if err := l.Set(limit.Table{Defaults: limits}); err != nil {
		t.Fatal(err)
	}
}

// Groups of limits that apply to a call.
var (
	writeLimits = []limit.ID{limit.PointsPerSecond, limit.BytesPerSecond, limit.Entities, limit.PointBytes}
	readLimits  = []limit.ID{limit.ConcurrentReads}
	rangeLimits = []limit.ID{limit.ConcurrentReads, limit.RangeLength}
	noLimits    = []limit.ID{}
)

// limitsOf says which limits apply to each of operations. TestEachCallIsHeldToItsLimits fails if one is missing here.
var limitsOf = map[string][]limit.ID{
	"Put": writeLimits, "PutIfAbsent": writeLimits, "PutMany": writeLimits, "Via": writeLimits,
	"Get": readLimits, "Latest": readLimits, "AsOf": readLimits, "LatestN": readLimits, "LatestMany": readLimits, "LatestMany of several": readLimits,
	"Under.Latest": readLimits, "Under.Entities": readLimits, "Under.PageLatest": readLimits, "Under.PageEntities": readLimits,
	"LatestFields": readLimits, "LatestFieldsMany": readLimits, "Under.LatestFields": readLimits,
	"Range": rangeLimits, "Page": rangeLimits, "Follow": readLimits,
	"Delete": noLimits, "DeleteRange": noLimits, "DeleteRange of all": noLimits, "DeletePrefix": noLimits,
}

// usedUp sets a limit and uses it up, so that each call to which it applies is rejected.
var usedUp = map[limit.ID]func(t *testing.T, l *limit.Limiter) (end func()){
	limit.PointsPerSecond: func(t *testing.T, l *limit.Limiter) func() {
		restrict(t, l, limit.Limits{PointsPerSecond: 1})
		return spend(t, l, 1)
	},
	limit.BytesPerSecond: func(t *testing.T, l *limit.Limiter) func() {
		restrict(t, l, limit.Limits{BytesPerSecond: 3})
		return spend(t, l, 300)
	},
	limit.Entities: func(t *testing.T, l *limit.Limiter) func() {
		restrict(t, l, limit.Limits{Entities: 1})
		return spend(t, l, 1)
	},
	limit.PointBytes: func(t *testing.T, l *limit.Limiter) func() {
		restrict(t, l, limit.Limits{PointBytes: 2})
		return func() {}
	},
	limit.RangeLength: func(t *testing.T, l *limit.Limiter) func() {
		restrict(t, l, limit.Limits{RangeLength: time.Hour})
		return func() {}
	},
	limit.ConcurrentReads: func(t *testing.T, l *limit.Limiter) func() {
		restrict(t, l, limit.Limits{ConcurrentReads: 1})
		return must[func()](t)(gate.Of(l).Read(acme))
	},
}

func spend(t *testing.T, l *limit.Limiter, bytes int) func() {
	t.Helper()
	if err := gate.Of(l).Write(acme, "other", "other", bytes); err != nil {
		t.Fatal(err)
	}
	return func() {}
}

// TestEachCallIsHeldToItsLimits: each limit that applies to a call rejects it before anything is sent, and no other
// limit does.
func TestEachCallIsHeldToItsLimits(t *testing.T) {
	for name := range operations {
		if limitsOf[name] == nil {
			t.Errorf("%s: add it to limitsOf with the limits that apply to it", name)
		}
	}
	s := must[*tsdb.Schema[string]](t)(tsdb.Define("r", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{}))
	longBubble(t, func(t *testing.T) { // in which rates do not refill
		l := limiter(t)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l, Cache: cached.Cache}}, s)
		repo := s.For(store, acme)
		var points []tsdb.Point[string]
		for _, parts := range hostileEntities {
			e := tsdb.NewEntity(parts...)
			points = append(points, tsdb.Point[string]{Entity: e, Time: start, Value: label("acme", "r", parts)})
		}
		e := points[0].Entity
		for name, held := range limitsOf {
			for id, use := range usedUp {
				restrict(t, l, limit.Limits{})
				must[[]tsdb.Outcome](t)(repo.PutMany(t.Context(), points))
				end := use(t, l)
				conn.Reset()
				_, err := operations[name](t.Context(), repo, e, start)
				refused, ok := errors.AsType[*limit.Error](err)
				switch {
				case !slices.Contains(held, id):
					if err != nil {
						t.Errorf("%s with %s used up: %v", name, id, err)
					}
				case !ok || refused.ID != id || refused.Tenant != acme || !errors.Is(err, limit.ErrExceeded):
					t.Errorf("%s with %s used up: %v", name, id, err)
				case slices.Contains(writeLimits, id) && !errors.Is(err, tsdb.ErrRejected):
					t.Errorf("%s with %s used up: %v, want ErrRejected", name, id, err)
				case len(conn.Counts().Calls) > 0:
					t.Errorf("%s with %s used up sent requests: %v", name, id, conn.Counts().Calls)
				}
				end()
			}
		}
		w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{}))
		for _, c := range calls.Of("Sink.") {
			name := strings.TrimPrefix(c.Name(), "Sink.")
			if c.Tenants == calls.None {
				continue
			}
			for _, id := range writeLimits {
				restrict(t, l, limit.Limits{})
				spend(t, l, 0) // a call without limits resets the usage
				end := usedUp[id](t, l)
				err := sinkCalls[name](t.Context(), repo.Via(w), e, start)
				if refused, ok := errors.AsType[*limit.Error](err); !ok || refused.ID != id || !errors.Is(err, tsdb.ErrRejected) {
					t.Errorf("Sink.%s with %s used up: %v", name, id, err)
				}
				end()
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestManyPointsAreLimitedOneByOne: points over the limit are rejected at their index, the others are stored.
func TestManyPointsAreLimitedOneByOne(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	longBubble(t, func(t *testing.T) {
		l := limiter(t)
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l}}, s)
		repo := s.For(store, acme)
		restrict(t, l, limit.Limits{PointsPerSecond: 10, PointsBurst: 3})
		w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{}))
		for i, put := range []func(context.Context, []tsdb.Point[reading]) ([]tsdb.Outcome, error){repo.PutMany, repo.Via(w).EnqueueMany} {
			time.Sleep(time.Second) // fills the burst of three
			points := make([]tsdb.Point[reading], 5)
			for n := range points {
				points[n] = tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(10*i+n) * time.Second)}
			}
			points[1].Entity = tsdb.Entity{} // invalid, so it does not count
			outcomes, err := put(t.Context(), points)
			var states []tsdb.State
			for _, o := range outcomes {
				states = append(states, o.State)
			}
			if want := []tsdb.State{tsdb.Stored, tsdb.Rejected, tsdb.Stored, tsdb.Stored, tsdb.Rejected}; !slices.Equal(states, want) {
				t.Errorf("states are %v, want %v", states, want)
			}
			failed, ok := errors.AsType[*tsdb.BatchError](err)
			if !ok || len(failed.Failed) != 2 || failed.Failed[1].Index != 4 || !errors.Is(failed.Failed[1].Outcome.Err, limit.ErrExceeded) {
				t.Errorf("PutMany = %v", err)
			}
			if e, ok := errors.AsType[*limit.Error](err); !ok || e.RetryAfter != 100*time.Millisecond {
				t.Errorf("limit error %+v", e)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(rows(t, table)); n != 6 {
			t.Errorf("%d points are stored, want 6", n)
		}
	})
}

// TestNoisyNeighbour: one tenant offers a hundred times its limit for an hour, with every way of writing. Exactly its
// burst and its rate are stored; the other tenant loses no point and does not wait.
func TestNoisyNeighbour(t *testing.T) {
	const rate, burst = 2, 50
	const offered = 100 * rate
	seconds := 3600
	if testkit.Raced {
		seconds = 300
	}
	s := readings(t, tsdb.SchemaOptions{})
	longBubble(t, func(t *testing.T) {
		l := must[*limit.Limiter](t)(limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: rate, PointsBurst: burst}}, limit.Options{}))
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l}}, s)
		noisy, quiet := s.For(store, acme), s.For(store, tenant.MustParse("acme2"))
		w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{Linger: -1}))
		in := noisy.Via(w)
		begin := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			at := start
			next := func() time.Time { at = at.Add(time.Millisecond); return at }
			for range seconds {
				for range offered / 4 {
					_ = noisy.Put(t.Context(), roof, next(), reading{})
					_ = in.Enqueue(t.Context(), roof, next(), reading{})
				}
				points := make([]tsdb.Point[reading], offered/2)
				for i := range points {
					points[i] = tsdb.Point[reading]{Entity: roof, Time: next()}
				}
				_, _ = noisy.PutMany(t.Context(), points)
				time.Sleep(time.Second)
			}
		})
		wg.Go(func() {
			for i := range seconds * rate {
				before := time.Now()
				if err := quiet.Put(t.Context(), roof, start.Add(time.Duration(i)*time.Millisecond), reading{}); err != nil {
					t.Errorf("the quiet tenant's point %d: %v", i, err)
				}
				if took := time.Since(before); took > 0 {
					t.Errorf("the quiet tenant's point %d took %v", i, took)
				}
				time.Sleep(time.Second / rate)
			}
		})
		wg.Wait()
		if took := time.Since(begin); took != time.Duration(seconds)*time.Second {
			t.Fatalf("%d seconds took %v: a write has waited", seconds, took)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		// Its last point was offered a second before the end.
		counts := map[byte]int{}
		for key := range rows(t, table) {
			counts[key[len("acme")]]++
		}
		if got, want := counts['#'], burst+rate*(seconds-1); got != want {
			t.Errorf("%d points of the noisy tenant are stored, want %d", got, want)
		}
		if got, want := counts['2'], rate*seconds; got != want {
			t.Errorf("%d points of the quiet tenant are stored, want %d", got, want)
		}
	})
}

// TestReadsUnderWay: a sequence counts as a running read from its first step until its loop ends, in any way.
func TestReadsUnderWay(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	l := limiter(t)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l}}, s)
	repo := s.For(store, acme)
	for i := range 3 {
		for _, e := range []tsdb.Entity{roof, tsdb.NewEntity("berlin", "roof-8")} {
			if err := repo.Put(t.Context(), e, start.Add(time.Duration(i)*time.Second), reading{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	restrict(t, l, limit.Limits{ConcurrentReads: 1})
	free := func(after string) {
		t.Helper()
		if _, err := repo.Latest(t.Context(), roof); err != nil {
			t.Errorf("a read after %s: %v", after, err)
		}
	}
	all := repo.Range(t.Context(), roof, tsdb.AllTime())
	under := repo.Under(tsdb.AllEntities()).Latest(t.Context())
	free("making sequences")
	for range all {
		if _, err := repo.Latest(t.Context(), roof); !errors.Is(err, limit.ErrExceeded) {
			t.Errorf("a second read within the loop: %v, want ErrExceeded", err)
		}
		break
	}
	free("leaving a range")
	for range under {
		if _, err := latestMany(t.Context(), repo, []tsdb.Entity{roof}); !errors.Is(err, limit.ErrExceeded) {
			t.Errorf("a second read within the loop: %v, want ErrExceeded", err)
		}
		for _, err := range repo.Under(tsdb.AllEntities()).Entities(t.Context(), tsdb.AllTime()) {
			if !errors.Is(err, limit.ErrExceeded) {
				t.Errorf("a second sequence within the loop: %v, want ErrExceeded", err)
			}
		}
		break
	}
	free("leaving Under.Latest")
	for range all {
	}
	free("a range that was run again, to its end")
	func() {
		defer func() { _ = recover() }()
		for range all {
			panic("in the loop")
		}
	}()
	free("a loop that panicked")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range repo.Range(gone, roof, tsdb.AllTime()) {
	}
	_, _ = repo.Page(gone, roof, tsdb.AllTime(), 10, "")
	_, _ = repo.LatestN(gone, roof, 3)
	free("calls that failed")
}

// TestRangeLength: only time in which points can be visible counts.
func TestRangeLength(t *testing.T) {
	const day = 24 * time.Hour
	kept, forever := readings(t, tsdb.SchemaOptions{Retention: d90}), readings(t, tsdb.SchemaOptions{})
	now := start.Add(200*day + 123456789)
	for _, tt := range []struct {
		name   string
		schema *tsdb.Schema[reading]
		in     tsdb.Interval
		most   time.Duration
		used   time.Duration // 0 if the call is allowed
	}{
		{"all that is kept", kept, tsdb.AllTime(), 90 * day, 0},
		{"all that is kept is more", kept, tsdb.AllTime(), 89 * day, 90*day - 543211},
		{"without a start", kept, tsdb.Until(now.Add(-89 * day)), day, 0},
		{"from long ago", kept, tsdb.Between(start.Add(-1000*day), now), 90 * day, 0},
		{"all of time", forever, tsdb.AllTime(), 365 * day, now.Sub(time.Unix(0, 0))},
		{"all of time until then", forever, tsdb.Until(start), 365 * day, start.Sub(time.Unix(0, 0))},
		{"without an end", forever, tsdb.Since(now.Add(-day)), day, 0},
		{"without an end is more", forever, tsdb.Since(now.Add(-day - 1)), day, day + 1},
		{"in the future", forever, tsdb.Since(now.Add(day)), 1, 0},
		{"an hour", forever, tsdb.Between(start, start.Add(time.Hour)), time.Hour, 0},
		{"an hour and its end", forever, tsdb.Between(start, start.Add(time.Hour)).ClosedEnd(), time.Hour, time.Hour + 1},
		{"an hour without its start", forever, tsdb.Between(start, start.Add(time.Hour)).OpenStart().ClosedEnd(), time.Hour, 0},
		{"into the future", forever, tsdb.Between(now, now.Add(2*time.Hour)), time.Hour, 2 * time.Hour},
	} {
		l := limiter(t)
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l, Clock: testkit.NewClock(now).Now}}, tt.schema)
		restrict(t, l, limit.Limits{RangeLength: tt.most})
		repo := tt.schema.For(store, acme)
		var ranged error
		for _, err := range repo.Range(t.Context(), roof, tt.in) {
			ranged = err
		}
		_, paged := repo.Page(t.Context(), roof, tt.in, 10, "")
		for _, err := range []error{ranged, paged} {
			e, refused := errors.AsType[*limit.Error](err)
			switch {
			case !refused && (err != nil || tt.used != 0):
				t.Errorf("%s: error %v, want %v to be rejected", tt.name, err, tt.used)
			case refused && (time.Duration(e.Used) != tt.used || e.ID != limit.RangeLength || time.Duration(e.Limit) != tt.most || e.RetryAfter != 0):
				t.Errorf("%s: limit error %v, want used %v", tt.name, e, tt.used)
			}
		}
	}
}

// TestFanOutIsCut: a call runs at most as many parallel requests as its tenant's limit, whatever Concurrency it asks
// for, and returns all results.
func TestFanOutIsCut(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		var now, most atomic.Int32
		count := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return streamer(ctx, desc, cc, method, opts...)
		})
		s := readings(t, tsdb.SchemaOptions{Salts: 16})
		l := limiter(t)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l, Cache: cached.Cache}, DialOptions: []grpc.DialOption{count}}, s)
		repo := s.For(store, acme)
		var entities []tsdb.Entity
		for i := range 100 {
			e := tsdb.NewEntity("berlin", fmt.Sprint(i))
			entities = append(entities, e)
			if err := repo.Put(t.Context(), e, start, reading{}); err != nil {
				t.Fatal(err)
			}
		}
		conn.Inject(tsdbtest.Delay(5 * time.Millisecond).On(tsdbtest.ReadRows))
		for i, tt := range []struct {
			limit int64
			opts  []tsdb.ReadOption
			want  int32
		}{
			{0, []tsdb.ReadOption{tsdb.Concurrency(9)}, 9},
			{3, nil, 3},
			{3, []tsdb.ReadOption{tsdb.Concurrency(9)}, 3},
			{3, []tsdb.ReadOption{tsdb.Concurrency(2)}, 2},
			{1, []tsdb.ReadOption{tsdb.MaxStale(1)}, 1},
		} {
			restrict(t, l, limit.Limits{FanOut: tt.limit})
			for name, call := range map[string]func() (int, error){
				"LatestMany": func() (int, error) {
					answers, err := latestMany(t.Context(), repo, entities, tt.opts...)
					return len(answers), err
				},
				"LatestMany of several": func() (int, error) {
					histories, err := repo.LatestMany(t.Context(), entities, 2, tt.opts...)
					return len(histories), err
				},
				"Under.Latest": func() (n int, err error) {
					for _, err := range repo.Under(tsdb.AllEntities()).Latest(t.Context(), tt.opts...) {
						if err != nil {
							return n, err
						}
						n++
					}
					return n, nil
				},
				"Entities": func() (n int, err error) {
					for _, err := range repo.Under(tsdb.AllEntities()).Entities(t.Context(), tsdb.AllTime(), tt.opts...) {
						if err != nil {
							return n, err
						}
						n++
					}
					return n, nil
				},
			} {
				most.Store(0)
				if n, err := call(); err != nil || n != len(entities) {
					t.Errorf("%s with %v under a limit of %d: %d entities, %v", name, tt.opts, tt.limit, n, err)
				}
				want := tt.want
				if name == "LatestMany" && i > 0 { // the entities are known: one request
					want = 1
				}
				if got := most.Load(); got != want {
					t.Errorf("%s with %v under a limit of %d has %d requests at once, want %d", name, tt.opts, tt.limit, got, want)
				}
			}
		}
	})
}

// TestJournalCountsOnce: a point counts towards the limits when it is enqueued, and not again when a later process
// delivers it.
func TestJournalCountsOnce(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	bubble(t, func(t *testing.T) {
		l := limiter(t)
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l, Timeouts: tsdb.Timeouts{Write: faultTimeout() / 2}}}, s)
		restrict(t, l, limit.Limits{PointsPerSecond: 1, PointsBurst: 3})
		opts := journaled(t)
		end := conn.Outage()
		w := must[*tsdb.Writer](t)(store.NewWriter(opts))
		in := s.For(store, acme).Via(w)
		for i := range 3 {
			if err := in.Enqueue(t.Context(), roof, start.Add(time.Duration(i)), reading{}); err != nil {
				t.Fatal(err)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_ = w.Close(gone)
		end()
		restrict(t, l, limit.Limits{PointsPerSecond: 1, PointBytes: 1}) // limits that would reject each of the points
		again := must[*tsdb.Writer](t)(store.NewWriter(opts))
		if err := again.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := again.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(rows(t, table)); n != 3 {
			t.Errorf("%d points are stored, want the 3 that were accepted", n)
		}
	})
}
