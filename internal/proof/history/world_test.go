package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// plan is what a history does. All of it follows from the seed.
type plan struct {
	seed     uint64
	weak     bool // scans see each row in a state of its own
	real     bool // in real time; otherwise in a bubble of synctest
	tcp      bool // the engine is another process
	attach   bool // so is it, and the stores are attached to its folder
	collects bool // cells that need not be kept are removed now and then
	slowSync bool // a sync takes 20 ms, which a bubble cannot simulate: Pebble waits for it with a mutex
	clients  int
	load     time.Duration
}

func (p plan) String() string {
	text := fmt.Sprintf("seed %d", p.seed)
	for _, part := range []struct {
		is   bool
		name string
	}{{p.weak, "weak scans"}, {p.collects, "collections"}, {p.tcp, "over TCP"}, {p.attach, "attached"}, {p.slowSync, "slow syncs"}} {
		if part.is {
			text += ", " + part.name
		}
	}
	return text
}

const (
	table  = "tidemark"
	stores = 3
)

// Timeouts of the stores.
const (
	requestTimeout = 2 * time.Second
	scanTimeout    = 4 * time.Second
)

var acme, gone = tenant.MustParse("acme"), tenant.MustParse("gone") // gone is erased

// world is one history: an engine, its stores, and the calls of their clients.
type world struct {
	plan
	*recorder
	t        *testing.T
	chance   *dice
	host     host
	link     *link
	nodes    []*node
	guests   []*attached // with attach
	sets     []dataset
	feed     *feed
	counters *counters
	changes  *changes

	numbers, faults, failures atomic.Int32
	close                     []func() error
}

// node is a store. It stands for a program.
type node struct {
	id     int
	store  *tsdb.Store
	conn   *tsdbtest.Conn
	writer *tsdb.Writer
	acked  sync.Map // order of the last acknowledged write, by part of one row
}

func (n *node) lastAcked(p part) int64 {
	last, _ := n.acked.Load(p)
	order, _ := last.(int64)
	return order
}

// runWorld makes one history.
func runWorld(t *testing.T, p plan) *world {
	w := openWorld(t, p)
	w.run()
	w.end()
	return w
}

func openWorld(t *testing.T, p plan) *world {
	w := &world{
		plan: p, t: t, recorder: &recorder{byRow: p.weak, ops: map[part][]porcupine.Operation{}}, chance: newDice(p.seed, 1),
		sets: newDatasets(p.collects), feed: newFeed(), counters: newCounters(), changes: newChanges(),
	}
	w.link = &link{pause: func() time.Duration { return w.chance.millis(4) }}
	rnd := rand.New(rand.NewPCG(p.seed, 2))
	dir := t.TempDir()
	if p.tcp || p.attach {
		w.host = &there{weak: p.weak, attach: p.attach, dir: dir}
	} else {
		w.host = &here{plan: p, rnd: rnd}
	}
	conn, err := w.host.open()
	w.must(err)
	if p.attach {
		w.link.up(w.attachStores(dir)...)
	} else {
		w.link.up(conn)
	}
	for range stores {
		w.nodes = append(w.nodes, w.openNode())
	}
	all := []tsdb.Dataset{w.feed.schema, w.counters.schema, w.changes.schema}
	for _, d := range w.sets {
		all = append(all, d)
	}
	w.must(w.nodes[0].store.Ensure(t.Context(), all...))
	return w
}

// openNode opens a store, with faults of its own.
func (w *world) openNode() *node {
	n := &node{id: len(w.nodes), conn: new(tsdbtest.Conn)}
	opts := slices.Concat(tsdb.DialOptions(), n.conn.DialOptions(), w.link.of(n.id))
	conn, err := grpc.NewClient("passthrough:///link", append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	w.must(err)
	client, admin, err := local.Clients(w.t.Context(), conn) // closing the client closes both
	w.must(err)
	n.store, err = tsdb.New(client, table, tsdb.Options{Admin: admin, StoreOptions: tsdb.StoreOptions{
		Timeouts: tsdb.Timeouts{Read: requestTimeout, Write: requestTimeout, Scan: scanTimeout}, Cache: tsdb.CacheOptions{Entries: 100},
	}})
	w.must(err)
	in, err := inside.Of(n.store).Internals()
	w.must(err)
	in.OnlyFirst = n.id%2 == 0 && !w.tcp && !w.attach // as package embedded does
	n.writer, err = n.store.NewWriter(tsdb.WriterOptions{BatchPoints: 4})
	w.must(err)
	closeWriter := func() error {
		w.explain(n.writer.Close(w.t.Context())) // of points that were left out and stored later
		return nil
	}
	w.close = append(w.close, closeWriter, n.store.Close, client.Close)
	return n
}

// end closes the stores and the engine.
func (w *world) end() {
	for _, f := range w.close {
		if err := f(); err != nil {
			w.fail("closing: %v", err)
		}
	}
	w.link.down()()
	w.must(w.host.close())
}

// run puts the load on, and returns when everything has ended and is checked.
func (w *world) run() {
	ctx, stop := context.WithTimeout(w.t.Context(), w.load)
	defer stop()
	var clients, others sync.WaitGroup
	for i := range w.clients {
		clients.Go(func() { w.client(ctx, i) })
	}
	w.feed.begin(ctx, w, &clients)
	w.counters.begin(ctx, w, &clients)
	w.changes.begin(ctx, w, &clients)
	clients.Go(func() { w.export(ctx) })
	erased := w.beginErasures(ctx)
	others.Go(func() { w.disturb(ctx) })
	clients.Wait()
	others.Wait()
	for _, n := range w.nodes {
		n.conn.Clear()
	}
	w.feed.check(w)
	w.slowly(func(ctx context.Context) error {
		c := &client{world: w, id: -1, rnd: rand.New(rand.NewPCG(w.seed, 99)), tenant: acme}
		for _, d := range w.sets {
			if err := d.readAll(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
	w.counters.check(w)
	w.changes.check(w)
	erased.check(w)
}

// client makes calls until the load ends.
func (w *world) client(ctx context.Context, i int) {
	c := &client{world: w, id: i, rnd: rand.New(rand.NewPCG(w.seed, uint64(100+i))), tenant: acme}
	for pause(ctx, time.Duration(c.rnd.IntN(20))*time.Millisecond) {
		w.sets[c.rnd.IntN(len(w.sets))].step(w.t.Context(), c)
	}
}

// number returns a number that no other write has.
func (w *world) number() int32 { return w.numbers.Add(1) }

// disturb injects faults until the load ends, and lets the engine fail.
func (w *world) disturb(ctx context.Context) {
	rnd := rand.New(rand.NewPCG(w.seed, 3))
	next := time.Now().Add(w.load/4 + time.Duration(rnd.Int64N(int64(w.load/4))))
	for pause(ctx, time.Duration(rnd.IntN(40))*time.Millisecond) {
		w.faults.Add(1)
		if w.collects && rnd.IntN(3) == 0 {
			w.explain(w.host.collect(w.t.Context()))
		}
		if time.Now().Before(next) {
			w.nodes[rnd.IntN(stores)].conn.Inject(fault(rnd))
			continue
		}
		w.fall(rnd)
		next = time.Now().Add(w.load/4 + time.Duration(rnd.Int64N(int64(w.load/4))))
	}
}

// fall lets the engine fail, and starts it again.
func (w *world) fall(rnd *rand.Rand) {
	if w.attach {
		w.fallAttached(rnd)
		return
	}
	closeOld := w.link.down()
	w.host.fail()
	closeOld()
	time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
	conn, err := w.host.open()
	w.must(err)
	w.link.up(conn)
}

// fallAttached kills the owner, which starts again, or an attached store's process. Calls notice by themselves.
func (w *world) fallAttached(rnd *rand.Rand) {
	for _, guest := range w.guests {
		if rnd.IntN(2) == 0 {
			guest.kill()
			time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond)
		}
	}
	w.host.fail()
	time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
	_, err := w.host.open()
	w.must(err)
}

// fault draws a fault for some calls.
func fault(rnd *rand.Rand) tsdbtest.Fault {
	code := []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Aborted}[rnd.IntN(3)]
	method := []tsdbtest.Method{tsdbtest.ReadRows, tsdbtest.MutateRow, tsdbtest.MutateRows, tsdbtest.CheckAndMutateRow}[rnd.IntN(4)]
	pick := rnd.IntN(4)
	var f tsdbtest.Fault
	switch rnd.IntN(12) {
	case 0, 1:
		f = tsdbtest.Fail(code).On(method)
	case 2, 3:
		f = tsdbtest.LoseResponse(code).On(method)
	case 4:
		f = tsdbtest.CutStream(rnd.IntN(4), code).On(tsdbtest.ReadRows)
	case 5:
		f = tsdbtest.CutStream(rnd.IntN(4), code).On(tsdbtest.MutateRows)
	case 6:
		f = tsdbtest.FailEntries(code, func(key string) bool { return len(key)%4 == pick })
	case 7, 8:
		f = tsdbtest.Repeat()
	case 9:
		f = tsdbtest.Hang(rnd.IntN(3)).On(tsdbtest.ReadRows)
	default:
		f = tsdbtest.Delay(time.Duration(1+rnd.IntN(200)) * time.Millisecond).On(method)
	}
	return f.Times(1 + rnd.IntN(2))
}

// explain fails the test if an error comes from neither a fault nor one of the given causes.
func (w *world) explain(err error, causes ...error) {
	if err == nil || testkit.ByFaults(err, codes.Unavailable, codes.DeadlineExceeded, codes.Aborted) {
		return
	}
	if !slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) }) {
		w.fail("no fault explains this error: %v", err)
	}
}

// slowly makes a call until it succeeds, without faults.
func (w *world) slowly(call func(context.Context) error) {
	var err error
	for range 10 {
		if err = call(w.t.Context()); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
	w.fail("without faults: %v", err)
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
}

func (w *world) fail(format string, args ...any) {
	if w.failures.Add(1) <= 10 {
		w.t.Errorf("%v: %s", w.plan, fmt.Sprintf(format, args...))
	}
}

// hedge returns a read option: sometimes a hedge.
func (c *client) hedge() tsdb.ReadOption {
	if c.rnd.IntN(3) == 0 {
		return tsdb.Hedge{After: time.Duration(1+c.rnd.IntN(8)) * time.Millisecond, MaxRatio: 0.5}
	}
	return tsdb.Hedge{}
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
