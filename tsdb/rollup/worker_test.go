package rollup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
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

// one is a store with a schema and a rollup by hour.
type one struct {
	*clock
	hour   *rollup.Rollup[reading]
	schema *tsdb.Schema[reading]
	store  *tsdb.Store
	conn   *tsdbtest.Conn
	repo   *tsdb.Repository[reading]
	worker *rollup.Worker
}

func newOne(t *testing.T, opts rollup.Options, retention gc.Class, dial ...grpc.DialOption) *one {
	t.Helper()
	o := &one{clock: testkit.NewClock(start)}
	o.hour = rollup.MustDefine("hour", window.Every(time.Hour), measures(), opts)
	o.schema = tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Retention: retention, Rollups: []tsdb.Rollup{o.hour}})
	o.store, o.conn = tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: o.Now}, DialOptions: dial}, o.schema)
	o.repo = o.schema.For(o.store, acme)
	var err error
	if o.worker, err = rollup.NewWorker(o.store, rollup.WorkerOptions{Tenants: only(acme)}, o.schema); err != nil {
		t.Fatal(err)
	}
	return o
}

var roof = tsdb.NewEntity("berlin", "roof-7")

func (o *one) put(t *testing.T, at time.Time, temp float64) {
	t.Helper()
	if err := o.repo.Put(t.Context(), roof, at, reading{TempC: temp}); err != nil {
		t.Fatal(err)
	}
}

func (o *one) pass(t *testing.T) rollup.Pass {
	t.Helper()
	p, err := o.worker.Pass(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sums returns the sum of each bucket that a read returns, oldest first.
func (o *one) sums(t *testing.T) (out []float64) {
	t.Helper()
	for b, err := range rollup.For(o.hour, o.repo).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Values[0].Sum)
	}
	return out
}

// stored returns the sum in each cell of the rollup's rows.
func (o *one) stored(t *testing.T) (out []float64) {
	t.Helper()
	client, _ := tsdbtest.Clients(t, o.conn)
	err := client.Open(tsdbtest.Table).ReadRows(t.Context(), bigtable.PrefixRange("acme#r!rollup.hour#"), func(row bigtable.Row) bool {
		for _, item := range row["keep.s"] {
			if item.Column == "keep.s:s.temp" {
				v := int64(0)
				for _, b := range item.Value {
					v = v<<8 | int64(b)
				}
				out = append(out, float64(v)/100)
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (o *one) want(t *testing.T, what string, got []float64, want ...float64) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// TestOpenYoungAndDone: a bucket is stored once it is closed and its marks are old enough. Reads are correct before and
// after.
func TestOpenYoungAndDone(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		o := newOne(t, rollup.Options{Lateness: 10 * time.Minute}, gc.Class{})
		o.put(t, start, 1)
		o.put(t, start.Add(59*time.Minute), 2)
		o.Set(start.Add(70*time.Minute - time.Millisecond))
		if p := o.pass(t); p.Waiting != 1 || p.Buckets != 0 {
			t.Fatalf("pass with an open bucket: %+v", p)
		}
		o.want(t, "read", o.sums(t), 3)
		o.want(t, "stored", o.stored(t))
		o.put(t, start.Add(time.Minute), 4) // just before the bucket closes
		o.Set(start.Add(70 * time.Minute))
		if p := o.pass(t); p.Waiting != 1 || p.Buckets != 0 {
			t.Fatalf("pass with a young mark: %+v", p)
		}
		o.Add(31 * time.Second)
		if p := o.pass(t); p.Waiting != 0 || p.Buckets != 1 || p.Marks != 1 {
			t.Fatalf("pass with a due bucket: %+v", p)
		}
		o.want(t, "read", o.sums(t), 7)
		o.want(t, "stored", o.stored(t), 7)
		if p := o.pass(t); p != (rollup.Pass{Tenants: 1}) {
			t.Fatalf("pass without marks: %+v", p)
		}
		if err := o.repo.Delete(t.Context(), roof, start); err != nil {
			t.Fatal(err)
		}
		o.want(t, "read after a deletion", o.sums(t), 6)
		o.Add(time.Minute)
		o.pass(t)
		o.want(t, "stored after a deletion", o.stored(t), 6)
		if _, err := o.repo.DeleteRange(t.Context(), roof, tsdb.AllTime()); err != nil {
			t.Fatal(err)
		}
		o.want(t, "read of nothing", o.sums(t))
		o.Add(time.Minute)
		o.pass(t)
		o.want(t, "stored of nothing", o.stored(t))
	})
}

// TestWorkersThatCross: a worker reads the points of a bucket and is delayed. A late point arrives, another worker
// stores the bucket with it, and then the first one writes. In any order, the late point is in the bucket.
func TestWorkersThatCross(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		var before func()
		hold := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if f := before; f != nil && method == "/google.bigtable.v2.Bigtable/CheckAndMutateRow" {
				before = nil
				f()
			}
			return invoker(ctx, method, req, reply, cc, opts...)
		})
		for _, settled := range []bool{false, true} {
			o := newOne(t, rollup.Options{}, gc.Class{}, hold)
			o.put(t, start, 1)
			o.Set(start.Add(2 * time.Hour))
			if settled { // the row already has a generation
				o.pass(t)
				o.put(t, start.Add(time.Second), 10)
				o.Add(time.Hour)
			}
			other, err := rollup.NewWorker(o.store, rollup.WorkerOptions{Tenants: only(acme)}, o.schema)
			if err != nil {
				t.Fatal(err)
			}
			before = func() {
				o.put(t, start.Add(time.Minute), 100)
				o.Add(time.Hour)
				if _, err := other.Pass(t.Context()); err != nil {
					t.Error(err)
				}
			}
			o.pass(t)
			want := 101.0
			if settled {
				want = 111
			}
			o.want(t, "stored", o.stored(t), want)
			o.want(t, "read", o.sums(t), want)
			o.Add(time.Hour)
			o.pass(t)
			o.want(t, "stored after another pass", o.stored(t), want)
		}
	})
}

// TestSlowerWorkerFirst: one worker has read; then a late point arrives and another worker reads it. The first one
// stores its bucket before the second one can, which then starts over.
func TestSlowerWorkerFirst(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		before := make(chan func(), 2)
		hold := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if method == "/google.bigtable.v2.Bigtable/CheckAndMutateRow" {
				select {
				case f := <-before:
					f()
				default:
				}
			}
			return invoker(ctx, method, req, reply, cc, opts...)
		})
		o := newOne(t, rollup.Options{}, gc.Class{}, hold)
		o.put(t, start, 1)
		o.Set(start.Add(2 * time.Hour))
		held, release, done := make(chan bool), make(chan bool), make(chan bool)
		before <- func() { close(held); <-release }
		go func() {
			defer close(done)
			_, _ = o.worker.Pass(t.Context())
		}()
		<-held
		o.put(t, start.Add(time.Minute), 100)
		o.Add(time.Hour)
		before <- func() { close(release); <-done }
		other, err := rollup.NewWorker(o.store, rollup.WorkerOptions{Tenants: only(acme)}, o.schema)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.want(t, "stored", o.stored(t), 101)
		o.want(t, "read", o.sums(t), 101)
	})
}

// TestLatePointBehindTheWorker: a point that arrives after its bucket was read and before it is stored leaves a mark
// that stays.
func TestLatePointBehindTheWorker(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		var before func()
		hold := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if f := before; f != nil && method == "/google.bigtable.v2.Bigtable/CheckAndMutateRow" {
				before = nil
				f()
			}
			return invoker(ctx, method, req, reply, cc, opts...)
		})
		o := newOne(t, rollup.Options{}, gc.Class{}, hold)
		o.put(t, start, 1)
		o.Set(start.Add(2 * time.Hour))
		before = func() { o.put(t, start.Add(time.Minute), 100) }
		o.pass(t)
		o.want(t, "stored too early", o.stored(t), 1)
		o.want(t, "read", o.sums(t), 101)
		o.Add(2 * time.Minute)
		o.pass(t)
		o.want(t, "stored", o.stored(t), 101)
	})
}

// TestWorkerFaults: whatever fails, at any request of a pass, the next pass corrects it.
func TestWorkerFaults(t *testing.T) {
	for _, m := range []tsdbtest.Method{tsdbtest.ReadRows, tsdbtest.MutateRows, tsdbtest.CheckAndMutateRow} {
		for name, f := range map[string]tsdbtest.Fault{
			"before":     tsdbtest.Fail(codes.Internal),
			"after":      tsdbtest.LoseResponse(codes.Internal),
			"twice":      tsdbtest.LoseResponse(codes.Unavailable).Times(2),
			"stream cut": tsdbtest.CutStream(0, codes.Internal),
		} {
			t.Run(fmt.Sprint(m, " ", name), func(t *testing.T) {
				for skip := range 4 {
					addBubble(t, func(t *testing.T) {
						o := newOne(t, rollup.Options{}, gc.Class{})
						o.put(t, start, 1)
						o.put(t, start.Add(time.Hour), 2)
						o.Set(start.Add(3 * time.Hour))
						if name != "twice" {
							f = f.Times(1)
						}
						o.conn.Inject(f.On(m).Skip(skip))
						_, _ = o.worker.Pass(t.Context())
						o.conn.Clear()
						o.want(t, "read", o.sums(t), 1, 2)
						o.pass(t)
						o.want(t, "stored", o.stored(t), 2, 1)
						o.want(t, "read", o.sums(t), 1, 2)
					})
				}
			})
		}
	}
}

// TestWhatHasExpiredStays: once points of a bucket expire, it is not computed again. Its stored form is read until the
// rollup's own class hides it.
func TestWhatHasExpiredStays(t *testing.T) {
	addBubble(t, func(t *testing.T) {
		day := 24 * time.Hour
		o := newOne(t, rollup.Options{Retention: gc.Class{Name: "keep", Policy: gc.MaxAge(90 * day)}}, gc.Class{Name: "d7", Policy: gc.MaxAge(7 * day)})
		o.put(t, start, 1)
		o.put(t, start.Add(30*time.Minute), 2)
		o.Set(start.Add(2 * time.Hour))
		o.pass(t)
		o.Set(start.Add(7*day + 10*time.Minute)) // the first point has expired, the second one has not
		if err := o.repo.Delete(t.Context(), roof, start.Add(30*time.Minute)); err != nil {
			t.Fatal(err)
		}
		o.want(t, "read", o.sums(t), 3)
		o.Add(2 * time.Minute)
		o.pass(t)
		o.want(t, "stored", o.stored(t), 3)
		if p := o.pass(t); p.Waiting != 0 {
			t.Fatalf("marks of expired buckets are left: %+v", p)
		}
		o.Set(start.Add(90 * day))
		o.want(t, "read to the last", o.sums(t), 3)
		o.Add(time.Millisecond)
		o.want(t, "read once the bucket has expired", o.sums(t))
	})
}

// TestRunEnds: Run makes passes until its context ends.
func TestRunEnds(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("needs a simulated clock")
	}
	addBubble(t, func(t *testing.T) {
		o := newOne(t, rollup.Options{}, gc.Class{})
		o.put(t, start, 1)
		o.Set(start.Add(3 * time.Hour))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- o.worker.Run(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
		o.want(t, "stored", o.stored(t), 1)
	})
}
