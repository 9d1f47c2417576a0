package rollup_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestKilledWorker ends a worker before each of its requests in turn, with a late point in between. Reads are always
// correct, and another worker stores the correct buckets.
func TestKilledWorker(t *testing.T) {
	for kill := 1; ; kill += testkit.Stride(7) {
		over := false
		synctest.Test(t, func(t *testing.T) { over = killedAt(t, kill) })
		if over {
			if kill < 8 {
				t.Errorf("a pass made %d requests, so the test proves nothing", kill)
			}
			return
		}
	}
}

// killedAt kills a worker before its n-th request, and reports whether the pass made fewer requests.
func killedAt(t *testing.T, kill int) (over bool) {
	var left int
	var end context.CancelFunc
	step := func(ctx context.Context) error {
		if end == nil {
			return nil
		}
		if left--; left == 0 {
			end()
		}
		return ctx.Err()
	}
	dial := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if err := step(ctx); err != nil {
				return err
			}
			return invoker(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if err := step(ctx); err != nil {
				return nil, err
			}
			return streamer(ctx, desc, cc, method, opts...)
		}),
	}
	def := newThree(tsdb.SchemaOptions{})
	c := testkit.NewClock(start)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}, DialOptions: dial}, def.schema)
	repo := def.schema.For(store, acme)
	m := &model{repo, map[tsdb.Entity]map[time.Time]reading{roof: {}}}
	put := func(at time.Time, temp float64) {
		t.Helper()
		m.points[roof][at] = reading{TempC: temp}
		if err := repo.Put(t.Context(), roof, at, reading{TempC: temp}); err != nil {
			t.Fatal(err)
		}
	}
	worker := func() *rollup.Worker {
		w, err := rollup.NewWorker(store, rollup.WorkerOptions{Concurrency: 1}, def.schema)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	put(start, 1)
	put(start.Add(time.Hour), 2)
	c.Set(start.Add(72 * time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left, end = kill, cancel
	_, _ = worker().Pass(ctx)
	over, end = left > 0, nil
	put(start.Add(time.Second), 4)
	m.compare(t, kill, def, []tsdb.Entity{roof}, c.Now())
	for range 4 {
		c.Add(time.Hour)
		if _, err := worker().Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m.compare(t, kill, def, []tsdb.Entity{roof}, c.Now())
	return over
}

var hostile = []tenant.ID{tenant.MustParse("0"), tenant.MustParse("a"), tenant.MustParse("a."), tenant.MustParse("ab"), acme, acme2}

// foreign writes rows of another program.
func foreign(t *testing.T, table *bigtable.Table, keys ...string) {
	t.Helper()
	for _, key := range keys {
		m := bigtable.NewMutation()
		m.Set("keep", "x", 0, []byte("another program's"))
		if err := table.Apply(t.Context(), key, m); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWorkerFindsItsTenants: a worker without a list of tenants works on all tenants in the table, and on no others.
func TestWorkerFindsItsTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hour := rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		c := testkit.NewClock(start)
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, schema)
		foreign(t, table, "!own", "0", "acme", "acme!x", "a b#c", "zzz")
		for _, id := range hostile {
			if err := schema.For(store, id).Put(t.Context(), roof, start, reading{TempC: 1}); err != nil {
				t.Fatal(err)
			}
		}
		c.Set(start.Add(3 * time.Hour))
		w, err := rollup.NewWorker(store, rollup.WorkerOptions{}, schema)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := w.Pass(t.Context()); err != nil || p.Tenants != len(hostile) || p.Buckets != len(hostile) {
			t.Errorf("%+v, %v; want %d tenants and buckets", p, err, len(hostile))
		}
	})
}
