package history

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// feed is a dataset with followers and a rollup. Each of its entities has one writer, which writes the points 1, 2, 3
// and so on, and repeats each point until it is acknowledged.
type feed struct {
	schema *tsdb.Schema[int64]
	rollup *rollup.Rollup[int64]
	done   sync.WaitGroup
	stop   context.CancelFunc

	mu        sync.Mutex
	times     [feeders][]time.Time // of the acknowledged points
	followers []*follower
}

const feeders = 3

// follower is what one program has got from a follower, over its restarts.
type follower struct {
	node *node
	own  int // the entity whose points its store writes
	mu   sync.Mutex
	got  [feeders][]delivery
}

// delivery is a point that a follower has got. Of its store's own points, a follower delivers those at once that are
// written while it runs, and finds those before by polling. Each of the two is in order.
type delivery struct {
	n       int64
	restart int   // the number of the follower's start
	before  int64 // how many points of the entity were acknowledged before the start
	after   int64 // and after it
}

// arrived reports whether the point was written while the follower ran. It is not known of those written during the
// start.
func (d delivery) arrived() (is, known bool) {
	return d.n > d.after+1, d.n <= d.before || d.n > d.after+1
}

func newFeed() *feed {
	f := &feed{}
	count := []rollup.Measure[int64]{{Name: "n", Of: func(n int64) (float64, bool) { return float64(n), true }, Max: 1e6}}
	f.rollup = rollup.MustDefine("second", window.Every(time.Second), count, rollup.Options{Lateness: time.Second})
	f.schema = tsdb.MustDefine("feed", tsdb.Key("device"), codec.Int64(), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds, Rollups: []tsdb.Rollup{f.rollup},
	})
	return f
}

var feedEntities = [feeders]tsdb.Entity{tsdb.NewEntity("f"), tsdb.NewEntity("f#"), tsdb.NewEntity("f1")}

// begin starts the writers, a follower at each store, and two workers.
func (f *feed) begin(ctx context.Context, w *world, load *sync.WaitGroup) {
	running, stop := context.WithCancel(w.t.Context())
	f.stop = stop
	since := time.Now()
	for i, n := range w.nodes {
		to := &follower{node: n, own: i}
		f.followers = append(f.followers, to)
		f.done.Go(func() { f.follow(running, w, to, since, newDice(w.seed, uint64(300+i))) })
	}
	for i := range feeders {
		load.Go(func() { f.write(ctx, w, i, newDice(w.seed, uint64(310+i))) })
	}
	for _, n := range w.nodes[:2] {
		worker, err := rollup.NewWorker(n.store, rollup.WorkerOptions{
			Every: 300 * time.Millisecond, Settle: requestTimeout + time.Second, OnError: func(err error) { w.explain(err) },
		}, f.schema)
		w.must(err)
		f.done.Go(func() { _ = worker.Run(running) })
	}
}

// mostFed is how many points an entity gets at most. A cursor of a follower remembers 64 points: behind a restart it
// delivers others twice.
const mostFed = 64 / feeders

// write writes the points of an entity. All go through one store, so that each follower gets them in order.
func (f *feed) write(ctx context.Context, w *world, i int, chance *dice) {
	repo := f.schema.For(w.nodes[i%stores].store, acme)
	for n := int64(1); n <= mostFed && pause(ctx, chance.millis(250)+time.Millisecond); n++ {
		at := time.Now().Truncate(time.Millisecond)
		for {
			err := repo.Put(w.t.Context(), feedEntities[i], at, n)
			if err == nil {
				break
			}
			w.explain(err)
		}
		f.mu.Lock()
		f.times[i] = append(f.times[i], at)
		f.mu.Unlock()
	}
}

// follow takes points until ctx ends, and starts again behind its position now and then.
func (f *feed) follow(ctx context.Context, w *world, to *follower, since time.Time, chance *dice) {
	opts := tsdb.FollowOptions{Since: since, Interval: 100 * time.Millisecond}
	for restart := 0; ctx.Err() == nil; restart++ {
		before := f.acknowledged()
		from, err := f.schema.For(to.node.store, acme).Under(tsdb.AllEntities()).Follow(ctx, opts)
		if err != nil {
			w.explain(err)
			pause(ctx, 10*time.Millisecond)
			continue
		}
		after := f.acknowledged()
		left := 5 + chance.intN(20)
		for p, err := range from.Points(ctx) {
			if err != nil {
				w.explain(err)
				break
			}
			i := slices.Index(feedEntities[:], p.Entity)
			to.take(i, delivery{p.Value, restart, before[i], after[i]})
			if left--; left == 0 {
				break
			}
		}
		opts = tsdb.FollowOptions{After: from.Cursor(), Interval: opts.Interval}
		from.Close()
	}
}

// acknowledged returns how many points of each entity are acknowledged.
func (f *feed) acknowledged() (n [feeders]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, times := range f.times {
		n[i] = int64(len(times))
	}
	return n
}

func (to *follower) take(i int, d delivery) {
	to.mu.Lock()
	defer to.mu.Unlock()
	to.got[i] = append(to.got[i], d)
}

// has reports whether as many points have arrived.
func (to *follower) has(n [feeders]int64) bool {
	to.mu.Lock()
	defer to.mu.Unlock()
	for i := range n {
		if int64(len(to.got[i])) < n[i] {
			return false
		}
	}
	return true
}

// check checks, without faults, that each follower has got each point once and in order, and that the rollup is that of
// the points.
func (f *feed) check(w *world) {
	all := f.acknowledged()
	for range 300 {
		if !slices.ContainsFunc(f.followers, func(to *follower) bool { return !to.has(all) }) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond) // for what comes twice
	f.stop()
	f.done.Wait()
	for k, to := range f.followers {
		for i, n := range all {
			if !to.complete(i, n) {
				w.fail("the follower at store %d got the points %v of %s, want 1 to %d in order", k, to.got[i], feedEntities[i], n)
			}
		}
	}
	f.checkRollup(w)
}

// complete reports whether the follower has got the points 1 to n of an entity, each once and in order.
func (to *follower) complete(i int, n int64) bool {
	type order struct {
		restart int
		arrived bool
	}
	last, seen := map[order]int64{}, map[int64]bool{}
	for _, d := range to.got[i] {
		seen[d.n] = true
		var in order
		if i == to.own {
			arrived, known := d.arrived()
			if !known {
				continue
			}
			in = order{d.restart, arrived}
		}
		if d.n <= last[in] {
			return false
		}
		last[in] = d.n
	}
	return int64(len(to.got[i])) == n && int64(len(seen)) == n
}

func (f *feed) checkRollup(w *world) {
	store := w.nodes[0].store
	const settle = requestTimeout + time.Second
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Settle: settle}, f.schema)
	w.must(err)
	if w.real {
		time.Sleep(settle + 2*time.Second) // marks of late points are younger, and wait
	} else {
		time.Sleep(2 * time.Minute)
	}
	w.slowly(func(ctx context.Context) error {
		pass, err := worker.Pass(ctx)
		if err == nil && !w.real && pass.Marks+pass.Waiting > 0 { // reads compute what the worker has not
			err = fmt.Errorf("the worker leaves %+v", pass)
		}
		return err
	})
	for i, times := range f.times {
		want := map[int64]int64{}
		for _, at := range times {
			want[at.Unix()]++
		}
		buckets, err := collect(rollup.For(f.rollup, f.schema.For(store, acme)).Buckets(w.t.Context(), feedEntities[i], tsdb.AllTime()))
		if err != nil {
			w.fail("reading buckets: %v", err)
		}
		for _, b := range buckets {
			if b.Points != want[b.Start.Unix()] {
				w.fail("the bucket of %s at %v has %d points, want %d", feedEntities[i], b.Start, b.Points, want[b.Start.Unix()])
			}
			delete(want, b.Start.Unix())
		}
		if len(want) > 0 {
			w.fail("the rollup of %s lacks the buckets %v", feedEntities[i], want)
		}
	}
}
