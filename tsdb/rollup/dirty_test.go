package rollup_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// chain is a store with rollups by minute, hour and day, each from the one before.
type chain struct {
	*clock
	three
	store  *tsdb.Store
	conn   *tsdbtest.Conn
	repo   *tsdb.Repository[reading]
	worker *rollup.Worker
}

func newChain(t *testing.T, dial ...grpc.DialOption) *chain {
	t.Helper()
	c := &chain{clock: testkit.NewClock(start), three: newThree(tsdb.SchemaOptions{})}
	c.store, c.conn = tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}, DialOptions: dial}, c.schema)
	c.repo = c.schema.For(c.store, acme)
	var err error
	if c.worker, err = rollup.NewWorker(c.store, rollup.WorkerOptions{Tenants: only(acme)}, c.schema); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *chain) put(t *testing.T, at time.Time, temp float64) {
	t.Helper()
	if err := c.repo.Put(t.Context(), roof, at, reading{TempC: temp}); err != nil {
		t.Fatal(err)
	}
}

// settle makes passes, an hour apart, until no mark is left.
func (c *chain) settle(t *testing.T) {
	t.Helper()
	for range 5 {
		p, err := c.worker.Pass(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p.Marks == 0 && p.Waiting == 0 {
			return
		}
		c.Add(time.Hour)
	}
	t.Fatal("the passes do not clear all marks")
}

func total(t *testing.T, r *rollup.Rollup[reading], repo *tsdb.Repository[reading], in tsdb.Interval) window.Bucket {
	t.Helper()
	b, err := rollup.For(r, repo).Total(t.Context(), roof, in)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestMarksBehindTheEndOfTheInterval: a bucket that starts in an interval is read whole. So marks after the
// interval's end count, in later rows, too.
func TestMarksBehindTheEndOfTheInterval(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		c := newChain(t)
		midnight := c.day.Grid().Next(start)
		c.put(t, midnight, 1)
		c.Set(midnight.Add(48 * time.Hour))
		c.settle(t)
		c.put(t, midnight.Add(20*time.Hour), 10)
		for _, in := range []tsdb.Interval{tsdb.Between(midnight, midnight.Add(time.Millisecond)), tsdb.Until(midnight.Add(time.Hour))} {
			if got := total(t, c.day, c.repo, in); got.Points != 2 || got.Values[0].Sum != 11 {
				t.Errorf("the day's bucket of %v is %+v, want the two points", in, got)
			}
		}
	})
}

// TestReadBesideAWorkerThatPassesMarksOn: during a read, a worker stores the finer rollup, marks the coarser one and
// removes the finer marks. The read must find the finer or the coarser marks.
func TestReadBesideAWorkerThatPassesMarksOn(t *testing.T) {
	for at := range int32(5) {
		addBubble(t, func(t *testing.T) {
			var before func()
			var reads atomic.Int32
			hold := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				if f := before; f != nil && method == "/google.bigtable.v2.Bigtable/ReadRows" && reads.Add(1) == at+1 {
					before = nil
					f()
				}
				return streamer(ctx, desc, cc, method, opts...)
			})
			c := newChain(t, hold)
			midnight := c.day.Grid().Next(start)
			c.put(t, midnight, 1)
			c.Set(midnight.Add(48 * time.Hour))
			c.settle(t)
			c.put(t, midnight.Add(time.Hour), 10)
			c.Add(time.Hour)
			before = func() {
				if _, err := c.worker.Pass(context.Background()); err != nil {
					t.Error(err)
				}
			}
			if got := total(t, c.day, c.repo, tsdb.Since(midnight)); got.Points != 2 || got.Values[0].Sum != 11 {
				t.Errorf("before request %d: %+v, want the two points", at, got)
			}
		})
	}
}

// TestMoreMarksThanARead: a read of more marked buckets than it holds in memory processes them in parts. It returns
// each bucket once, in order, with the aggregates of the points.
func TestMoreMarksThanARead(t *testing.T) {
	testkit.Plain(t)
	addBubble(t, func(t *testing.T) {
		const n = 9000
		fine := rollup.MustDefine("fine", window.Every(7*time.Second), measures(), rollup.Options{})
		coarse := rollup.MustDefine("coarse", window.Every(14*time.Second), measures(), rollup.Options{From: "fine"})
		schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{fine, coarse}})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
		repo := schema.For(store, acme)
		points := make([]tsdb.Point[reading], n)
		for i := range points {
			points[i] = tsdb.Point[reading]{Entity: roof, Time: start.AddDate(-27, 0, 0).Add(time.Duration(i) * 7 * time.Second)}
		}
		if _, err := repo.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*rollup.Rollup[reading]{fine, coarse} {
			for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
				sum, last := int64(0), time.Time{}
				for b, err := range rollup.For(r, repo).Buckets(t.Context(), roof, tsdb.AllTime(), order) {
					if err != nil {
						t.Fatal(err)
					}
					if !last.IsZero() && b.Start.After(last) != (order == tsdb.OldestFirst) || b.Start.Equal(last) {
						t.Fatalf("%s, order %v: %v follows %v", r.Name(), order, b.Start, last)
					}
					sum, last = sum+b.Points, b.Start
				}
				if sum != n {
					t.Errorf("%s, order %v: %d points, want %d", r.Name(), order, sum, n)
				}
			}
		}
	})
}

// TestCoarserRollupsLearnFromWhoeverCan: a worker replaces the buckets of a finer rollup and fails to mark the coarser
// one. The next worker finds no difference, but must still mark the coarser rollup.
func TestCoarserRollupsLearnFromWhoeverCan(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		c := newChain(t)
		c.put(t, start, 1)
		c.Set(start.Add(72 * time.Hour))
		c.conn.Inject(tsdbtest.FailEntries(codes.Internal, func(key string) bool { return strings.Contains(key, "!mark.hour#") }).On(tsdbtest.MutateRows))
		if p, err := c.worker.Pass(t.Context()); err == nil || p.Buckets != 1 || p.Marks != 0 {
			t.Fatalf("a pass that cannot mark the coarser rollup: %+v, %v", p, err)
		}
		c.conn.Clear()
		c.settle(t)
		for _, r := range c.all() {
			if b := total(t, r, c.repo, tsdb.AllTime()); b.Points != 1 {
				t.Errorf("%s holds %d points, want 1", r.Name(), b.Points)
			}
		}
	})
}

// TestPointsThatExpireWhileARead: after a read has found the mark of a bucket, points of the bucket expire. The read
// returns the stored bucket, not one computed from the remaining points.
func TestPointsThatExpireWhileARead(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		const day = 24 * time.Hour
		var late func()
		hold := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if f := late; f != nil && strings.HasSuffix(method, "/ReadRows") {
				f()
			}
			return streamer(ctx, desc, cc, method, opts...)
		})
		o := newOne(t, rollup.Options{}, gc.Class{Name: "d7", Policy: gc.MaxAge(7 * day)}, hold)
		o.put(t, start, 1)
		o.put(t, start.Add(30*time.Minute), 2)
		o.Set(start.Add(2 * time.Hour))
		o.pass(t)
		o.Set(start.Add(7*day - 5*time.Second))
		o.put(t, start.Add(40*time.Minute), 4)
		late = func() { o.Add(4 * time.Second) }
		o.want(t, "read while points expire", o.sums(t), 3)
	})
}

// TestMarksOfOpenBucketsAreLeftAlone: the mark of an open slot carries its end, hours ahead. This does not mean that a
// clock is ahead.
func TestMarksOfOpenBucketsAreLeftAlone(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		c := newChain(t)
		c.Set(c.day.Grid().Next(start).Add(time.Hour))
		c.put(t, c.Now(), 1)
		for range 4 {
			c.conn.Reset()
			if _, err := c.worker.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.Add(2 * time.Hour)
		}
		if n := c.conn.Counts().Calls[tsdbtest.MutateRows]; n != 0 {
			t.Errorf("a pass over an open day made %d bulk writes, want 0", n)
		}
	})
}
