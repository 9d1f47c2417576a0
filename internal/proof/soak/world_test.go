package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// world holds the state of one run.
type world struct {
	metrics *metric.ManualReader
	plan
	t     *testing.T
	ctx   context.Context // ends when the load must end
	stop  context.CancelFunc
	clock clock
	base  time.Time // of slot 0
	begun time.Time

	store      *tsdb.Store
	other      *tsdb.Store // stands for another process; it only reads
	conn       *tsdbtest.Conn
	table      *bigtable.Table // without faults
	dir        string
	plain      *tsdb.Schema[reading]
	short      *tsdb.Schema[reading]
	fineRollup *rollup.Rollup[reading]
	coarse     *rollup.Rollup[reading]
	added      *added
	writer     atomic.Pointer[tsdb.Writer]
	victim     *customer
	customers  []*customer
	devices    []*device
	byTenant   map[string]*customer
	shortOnes  []*device

	stats    stats
	failures atomic.Int32
	erasure  atomic.Bool // the erasure has ended
}

// stats count what the run did.
type stats struct {
	put, acked, rejected, unknown, buried, events, buriedEvents, buriedVictim atomic.Int64
	reads, readErrors, points, faults, outages                                atomic.Int64
	rotations, kept, flushes, passes, buckets, collections                    atomic.Int64
}

// openWorld creates the schemas, the store and the devices.
func openWorld(t *testing.T, p plan) *world {
	w := &world{plan: p, t: t, dir: t.TempDir(), byTenant: map[string]*customer{}}
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx, w.stop = ctx, cancel
	t.Cleanup(cancel)
	measure := []rollup.Measure[reading]{{Name: "x", Of: func(r reading) (float64, bool) { return r.X, true }, Decimals: 2, Max: 100}}
	w.fineRollup = rollup.MustDefine("fine", window.Every(p.fine), measure, rollup.Options{Lateness: time.Second, Span: 60 * p.fine})
	w.coarse = rollup.MustDefine("coarse", window.Every(coarseBy*p.fine), measure, rollup.Options{From: "fine", Lateness: time.Second, Span: 60 * p.fine})
	w.plain = tsdb.MustDefine("plain", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3}, Rollups: []tsdb.Rollup{w.fineRollup, w.coarse},
	})
	w.short = tsdb.MustDefine("short", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds, Retention: gc.Class{Name: "brief", Policy: gc.MaxAge(p.shortAge)},
	})
	w.added = newAdded(p)
	w.store, w.conn, w.table = tsdbtest.OpenTable(t, tsdbtest.Options{
		StoreOptions: tsdb.StoreOptions{Clock: w.clock.now, RequireTenant: true, Cache: tsdb.CacheOptions{Entries: p.cacheEntries}, Timeouts: tsdb.Timeouts{Read: requestTimeout, Write: requestTimeout, Scan: scanTimeout}, Telemetry: w.telemetry()},
		Dir:          w.dir + "/table",
	})
	w.ensure()
	w.other = w.another(tsdb.CacheOptions{Entries: p.cacheEntries})
	w.base = time.Now().Truncate(coarseBy * p.fine).UTC()
	w.begun = time.Now()
	w.populate()
	w.added.populate(w)
	return w
}

// ensure creates the table. It tries again, because the short timeouts may be too short on a slow disk.
func (w *world) ensure() {
	for try := 1; ; try++ {
		err := w.store.Ensure(w.ctx, w.plain, w.short, w.added.schema)
		if err == nil {
			return
		}
		if !byFaults(err) || try == 20 {
			w.t.Fatalf("creating the table: %v", err)
		}
	}
}

// populate creates tenants and devices. Their names are easily confused: names that are prefixes of others, the same
// devices for each tenant, separators and escapes.
func (w *world) populate() {
	for i := range w.tenants {
		c := &customer{id: must(tenant.Parse(fmt.Sprintf("t%d", i)))}
		w.customers = append(w.customers, c)
		w.byTenant[c.id.String()] = c
	}
	w.victim = w.customers[w.tenants/2+5] // a tenant with many devices
	rnd := rand.New(rand.NewPCG(w.seed, 1))
	for n := range w.plan.devices {
		c := w.customers[n%w.tenants]
		if n >= w.tenants && n%10 < 3 {
			c = w.customers[n%w.noisy] // these few tenants have a third of all devices
		}
		d := &device{n: n, tenant: c, offset: time.Duration(rnd.IntN(int(slotWidth/time.Millisecond))) * time.Millisecond}
		i := len(c.devices)
		d.entity = tsdb.NewEntity([]string{"s", "s#", "s%23", "s#1"}[i%4], fmt.Sprintf("d%d", i))
		d.plain = newSeries(w.slots(), 0)
		if n%10 == 7 {
			d.short = newSeries(w.slots(), w.shortAge)
			w.shortOnes = append(w.shortOnes, d)
		}
		c.devices = append(c.devices, d)
		w.devices = append(w.devices, d)
	}
}

func (c *customer) ctx(ctx context.Context) context.Context { return tenant.NewContext(ctx, c.id) }

// find returns the device of an entity of a tenant.
func (c *customer) find(e tsdb.Entity) *device {
	for _, d := range c.devices {
		if d.entity == e {
			return d
		}
	}
	return nil
}

// slotNow returns the current slot of a device.
func (w *world) slotNow(d *device) int { return int((time.Since(w.base) - d.offset) / slotWidth) }

func (w *world) seriesOf(d *device, dataset string) *series {
	if dataset == w.short.Name() {
		return d.short
	}
	return d.plain
}

// fail fails the test and ends the load.
func (w *world) fail(format string, args ...any) {
	if w.failures.Add(1) <= 20 {
		w.t.Errorf("[%v, seed %d] %s", time.Since(w.begun).Round(time.Millisecond), w.seed, fmt.Sprintf(format, args...))
	}
	w.stop()
}

// byFaults reports whether the injected faults explain an error. besides are codes that only faults of writes cause.
func byFaults(err error, besides ...codes.Code) bool {
	return testkit.ByFaults(err, append(besides, passing...)...)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pause waits, and reports whether ctx is still active.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
