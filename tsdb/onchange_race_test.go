package tsdb_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestOnChangeAtOnce: many callers offer points of the same entities, others delete them, and one reads the statistics.
// Each point has one outcome, and after Close the newest one of each entity is stored.
func TestOnChangeAtOnce(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	c := newChanging(t, store, s, tsdb.WriterOptions{})
	const callers, each, entities = 8, 300, 4
	var clock, ended atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range each {
				e, at := tsdb.NewEntity("berlin", fmt.Sprint(n%entities)), start.Add(time.Duration(clock.Add(1))*time.Second)
				if err := c.sink.EnqueueFunc(t.Context(), e, at, reading{float64(n / 50)}, func(tsdb.Outcome) { ended.Add(1) }); err != nil {
					t.Error(err)
				}
				if i == 0 && n%100 == 50 {
					_, err := c.repo.DeleteRange(t.Context(), e, tsdb.Until(start.Add(time.Second)))
					if err != nil {
						t.Error(err)
					}
				}
				_ = c.w.Stats()
			}
		})
	}
	all.Wait()
	last := start.Add(time.Duration(clock.Add(1)) * time.Second)
	for n := range entities {
		if err := c.sink.Enqueue(t.Context(), tsdb.NewEntity("berlin", fmt.Sprint(n)), last, reading{each / 50}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ended.Load() != callers*each {
		t.Errorf("%d outcomes of %d points", ended.Load(), callers*each)
	}
	for n := range entities {
		p, err := c.repo.Latest(t.Context(), tsdb.NewEntity("berlin", fmt.Sprint(n)))
		if err != nil || !p.Time.Equal(last) {
			t.Errorf("the newest of entity %d is of %v (%v), want %v", n, p.Time, err, last)
		}
	}
}

// TestOnChangeDoesNotWaitForOthers: a point makes the writer forget an entity of another tenant, whose share of the
// buffer is full. The caller does not wait for space in it.
func TestOnChangeDoesNotWaitForOthers(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := tsdb.MustDefine("notes", tsdb.Key("device"), codec.String(), tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w := writer(t, store, tsdb.WriterOptions{BufferPoints: 40, BufferBytes: 16 << 20})
		other, large := s.For(store, tenant.MustParse("other")), strings.Repeat("x", 100_000)
		put := func(r *tsdb.Repository[string], n int, seconds ...int) {
			t.Helper()
			var points []tsdb.Point[string]
			for _, sec := range seconds {
				points = append(points, tsdb.Point[string]{Entity: tsdb.NewEntity(fmt.Sprint(n)), Time: start.Add(time.Duration(sec) * time.Second), Value: large})
			}
			if _, err := r.Via(w).OnChange(tsdb.OnChange[string]{}).EnqueueMany(t.Context(), points); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 80 { // fill what is remembered
			put(other, n, 0, 1)
		}
		conn.Inject(tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return strings.HasPrefix(key, "other#") }))
		for n := 0; other.Via(w).TryEnqueue(t.Context(), tsdb.NewEntity(fmt.Sprint("flood", n)), start, "") == nil; n++ {
		}
		begin := time.Now()
		for n := range 10 {
			put(s.For(store, acme), n, 0)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("a tenant waited %v for another one", took)
		}
		conn.Clear()
	})
}

// TestOnChangeHoldsUntilExpiry: a point that was left out, and expired before it would be stored, is not a lost one.
func TestOnChangeHoldsUntilExpiry(t *testing.T) {
	for name, then := range map[string]func(c *changing, now time.Time) tsdb.State{
		"Close": func(*changing, time.Time) tsdb.State { return tsdb.Stored },
		"a step": func(c *changing, now time.Time) tsdb.State {
			return c.put(int(now.Sub(start)/time.Second), 30)
		},
		"a point without comparison": func(c *changing, now time.Time) tsdb.State {
			out, _ := c.repo.Via(c.w).EnqueueMany(c.t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: now, Value: reading{30}}})
			return out[0].State
		},
	} {
		t.Run(name, func(t *testing.T) {
			longBubble(t, func(t *testing.T) {
				s := readings(t, tsdb.SchemaOptions{Retention: gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}})
				store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
				c := newChanging(t, store, s, tsdb.WriterOptions{OnFailure: func(u tsdb.Undelivered) { t.Errorf("lost %+v", u) }})
				at := start
				start = time.Now().Truncate(time.Second)
				defer func() { start = at }()
				c.want("0:20:stored 10:20:unchanged")
				time.Sleep(2 * time.Hour)
				if got := then(c, time.Now()); got != tsdb.Stored {
					t.Errorf("the next point is %v, want stored", got)
				}
				if err := c.w.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestOnFailureOneAtATime: OnFailure is never called twice at once, also if a held point finds no space while another
// point is reported. Each lost point is reported once.
func TestOnFailureOneAtATime(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		var running, calls atomic.Int64
		c := newChanging(t, store, s, tsdb.WriterOptions{BufferPoints: 40, OnFailure: func(tsdb.Undelivered) {
			if running.Add(1) > 1 {
				t.Error("OnFailure is called twice at once")
			}
			time.Sleep(time.Second)
			calls.Add(1)
			running.Add(-1)
		}})
		c.want("0:20:stored 10:20:unchanged")
		conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(string) bool { return true }).On(tsdbtest.MutateRows))
		plain := c.repo.Via(c.w)
		for n := 0; plain.TryEnqueue(t.Context(), tsdb.NewEntity("flood", fmt.Sprint(n)), start, reading{}) == nil; n++ {
		}
		for running.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		if err := plain.TryEnqueue(t.Context(), roof, start, reading{}); !errors.Is(err, tsdb.ErrBufferFull) {
			t.Fatal(err)
		}
		err := c.w.Close(t.Context())
		if lost, ok := errors.AsType[*tsdb.UndeliveredError](err); !ok || lost.Total != int(calls.Load()) {
			t.Errorf("%d points are reported, and Close says %v", calls.Load(), err)
		}
	})
}

// TestOnFailureThatPanics: a panic of OnFailure reaches the caller whose point is reported, and the writer reports the
// next ones.
func TestOnFailureThatPanics(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		var calls atomic.Int64
		c := newChanging(t, store, s, tsdb.WriterOptions{BufferPoints: 40, OnFailure: func(tsdb.Undelivered) {
			if calls.Add(1) == 1 {
				panic("the first one")
			}
		}})
		c.want("0:20:stored 10:20:unchanged")
		conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(string) bool { return true }).On(tsdbtest.MutateRows))
		plain := c.repo.Via(c.w)
		for n := 0; plain.TryEnqueue(t.Context(), tsdb.NewEntity("flood", fmt.Sprint(n)), start, reading{}) == nil; n++ {
		}
		func() {
			defer func() {
				if got := recover(); got != "the first one" {
					t.Errorf("the caller has %v, want the panic", got)
				}
			}()
			_ = plain.TryEnqueue(t.Context(), roof, start, reading{})
		}()
		err := c.w.Close(t.Context())
		if lost, ok := errors.AsType[*tsdb.UndeliveredError](err); !ok || lost.Total != int(calls.Load()) || lost.Total < 2 {
			t.Errorf("%d points are reported, and Close says %v", calls.Load(), err)
		}
	})
}
