package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// The ways to add events.
const (
	byStream = iota
	byMessage
	once
	ways
)

var wayNames = [ways]string{"stream", "message", "once"}

// event is an added value. All events of an entity's bucket have the same number, so the sum shows how many there are
// and whether they all belong to the bucket.
type event struct{ N int64 }

// added records which events were added.
type added struct {
	schema  *tsdb.Schema[event]
	rollups [ways]*rollup.Rollup[event]
	width   time.Duration
	buckets int

	mu     sync.Mutex
	things []thing
	counts [ways][]tally // by thing and bucket
}

// thing is an entity with events.
type thing struct {
	tenant *customer
	entity tsdb.Entity
}

// tally counts the events of one bucket: those that certainly count, and those that may count.
type tally struct{ certain, uncertain int32 }

func newAdded(p plan) *added {
	a := &added{width: p.fine, buckets: p.buckets()}
	measure := []rollup.Measure[event]{{Name: "n", Of: func(e event) (float64, bool) { return float64(e.N), true }, Max: 1e6}}
	for way, mode := range []rollup.Mode{rollup.ByStream, rollup.ByMessage, rollup.Once} {
		a.rollups[way] = rollup.MustDefine(wayNames[way], window.Every(p.fine), measure, rollup.Options{Mode: mode, Span: 60 * p.fine})
	}
	a.schema = tsdb.MustDefine("events", tsdb.Key("thing"), codec.JSON[event](), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds, Rollups: []tsdb.Rollup{a.rollups[0], a.rollups[1], a.rollups[2]},
	})
	return a
}

func (a *added) populate(w *world) {
	for _, c := range w.customers {
		for _, name := range []string{"x", "x#y"} {
			a.things = append(a.things, thing{c, tsdb.NewEntity(name)})
		}
	}
	for way := range a.counts {
		a.counts[way] = make([]tally, len(a.things)*a.buckets)
	}
}

func (a *added) bytes() int64 { return int64(ways * 8 * len(a.counts[0])) }

// number returns the number of each event of a bucket.
func number(way, thing, bucket int) int64 {
	return 1 + int64(mix(uint64(way), uint64(thing), uint64(bucket))%97)
}

func (a *added) note(way, thing, bucket int, sure, maybe int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := &a.counts[way][thing*a.buckets+bucket]
	t.certain += sure
	t.uncertain += maybe
}

func (a *added) tally(way, thing, bucket int) tally {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts[way][thing*a.buckets+bucket]
}

// add adds events in one of the ways until the load ends.
func (w *world) add(way int) {
	rnd := rand.New(rand.NewPCG(w.seed, uint64(200+way)))
	a := w.added
	for pause(w.ctx, time.Second/time.Duration(w.plan.events)) {
		i := rnd.IntN(len(a.things))
		if rnd.IntN(3) == 0 {
			i = rnd.IntN(2 * w.noisy) // some entities get more
		}
		now := int(time.Since(w.base) / a.width)
		bucket := max(0, now-rnd.IntN(3))
		at := w.base.Add(time.Duration(bucket)*a.width + rand.N(a.width).Truncate(time.Millisecond))
		w.stats.events.Add(1)
		w.addOne(rnd, way, i, bucket, at)
	}
}

func (w *world) addOne(rnd *rand.Rand, way, i, bucket int, at time.Time) {
	a, th := w.added, w.added.things[i]
	repo := a.schema.For(w.store, th.tenant.id)
	ctx := th.tenant.ctx(w.t.Context())
	v := event{number(way, i, bucket)}
	switch way {
	case byStream:
		ended := func(out tsdb.Outcome) { w.recordEvent(way, i, bucket, out.State, out.Err) }
		_ = rollup.NewAdder(a.rollups[way], repo, w.writer.Load()).AddFunc(ctx, th.entity, at, v, ended) // ended gets every outcome
	case once:
		add := rollup.NewAdder(a.rollups[way], repo, nil)
		if rnd.IntN(2) == 0 {
			state, err := stateOf(add.Add(ctx, th.entity, at, v))
			w.recordEvent(way, i, bucket, state, err)
			return
		}
		p := tsdb.Point[event]{Entity: th.entity, Time: at, Value: v}
		outs, _ := add.AddMany(ctx, []tsdb.Point[event]{p, p, p}) // each event has its own outcome
		for _, out := range outs {
			w.recordEvent(way, i, bucket, out.State, out.Err)
		}
	case byMessage:
		id := fmt.Sprintf("m-%d", rnd.Uint64())
		add := rollup.NewAdder(a.rollups[way], repo, nil)
		state, err := tsdb.Unknown, error(nil)
		unknown := false
		for try := 0; try < 20 && state != tsdb.Stored; try++ { // as a queue that redelivers until the message is acknowledged
			_, err = add.AddMessage(ctx, id, th.entity, at, v)
			if state, err = stateOf(err); state == tsdb.Unknown {
				unknown = true
			}
			if state == tsdb.Rejected && (w.ctx.Err() != nil || errors.Is(err, tsdb.ErrErased)) {
				break
			}
		}
		if unknown && state == tsdb.Rejected {
			state = tsdb.Unknown
		}
		w.recordEvent(way, i, bucket, state, err)
		if state == tsdb.Stored && rnd.IntN(3) == 0 { // sometimes deliver it once more
			if again, err := add.AddMessage(ctx, id, th.entity, at, v); err == nil && again {
				w.fail("message %s of tenant %s, thing %s was added twice", id, th.tenant.id, th.entity)
			}
		}
	}
}

// stateOf returns the state that an error of a write means.
func stateOf(err error) (tsdb.State, error) {
	switch {
	case err == nil:
		return tsdb.Stored, nil
	case errors.Is(err, tsdb.ErrRejected):
		return tsdb.Rejected, err
	}
	return tsdb.Unknown, err
}

func (w *world) recordEvent(way, i, bucket int, state tsdb.State, err error) {
	switch state {
	case tsdb.Stored, tsdb.Journaled:
		w.added.note(way, i, bucket, 1, 0)
	case tsdb.Unknown:
		w.added.note(way, i, bucket, 0, 1)
	}
	if err != nil && !w.refusal(w.added.things[i].tenant, err) {
		w.fail("%s: adding an event of tenant %s: %v", wayNames[way], w.added.things[i].tenant.id, err)
	}
}

// recordDead records that an event became a dead letter.
func (a *added) recordDead(w *world, u tsdb.Undelivered) {
	maybe := int32(0)
	if u.Outcome.State != tsdb.Rejected {
		maybe = 1
	}
	a.letter(w, u.Tenant, u.Entity, u.Time, -1, maybe)
}

// recordRetry records that a dead letter is delivered again.
func (a *added) recordRetry(w *world, l tsdb.DeadLetter) {
	a.letter(w, l.Tenant, l.Entity, l.Time, 1, 0)
}

func (a *added) letter(w *world, id tenant.ID, e tsdb.Entity, start time.Time, sure, maybe int32) {
	for i, th := range a.things {
		if th.tenant.id == id && th.entity == e {
			a.note(byStream, i, int(start.Sub(w.base)/a.width), sure, maybe)
			return
		}
	}
	w.fail("a dead letter of tenant %s has an event of the unknown entity %s", id, e)
}

// checkAdded compares the stored events with those that were added.
func (w *world) checkAdded(ctx context.Context, store *tsdb.Store) {
	a := w.added
	var total, unknown [ways]int64
	for way, r := range a.rollups {
		for i, th := range a.things {
			if th.tenant == w.victim {
				continue
			}
			found := make([]int64, a.buckets)
			for b, err := range rollup.For(r, a.schema.For(store, th.tenant.id)).Buckets(th.tenant.ctx(ctx), th.entity, tsdb.AllTime(), tsdb.OldestFirst) {
				if err != nil {
					w.fail("%s: reading the buckets of tenant %s, %s: %v", wayNames[way], th.tenant.id, th.entity, err)
					return
				}
				n := int(b.Start.Sub(w.base) / a.width)
				if n < 0 || n >= a.buckets || b.Start.Before(w.base) {
					w.fail("%s: tenant %s, %s has a bucket at %v without added events", wayNames[way], th.tenant.id, th.entity, b.Start)
					continue
				}
				found[n] = b.Points
				if s := b.Values[0]; s.Count != b.Points || int64(s.Sum) != b.Points*number(way, i, n) {
					w.fail("%s: tenant %s, %s, bucket %d: got %d events, %d numbers and a sum of %v; each number is %d",
						wayNames[way], th.tenant.id, th.entity, n, b.Points, s.Count, s.Sum, number(way, i, n))
				}
			}
			for n, got := range found {
				want := a.tally(way, i, n)
				total[way] += got
				unknown[way] += int64(want.uncertain)
				if got < int64(want.certain) || got > int64(want.certain+want.uncertain) {
					w.fail("%s: tenant %s, %s, bucket %d: got %d events, want %d, plus at most %d with an unknown outcome",
						wayNames[way], th.tenant.id, th.entity, n, got, want.certain, want.uncertain)
				}
			}
		}
	}
	for way := range ways {
		w.t.Logf("added by %s: %d events, %d had an unknown outcome", wayNames[way], total[way], unknown[way])
	}
}
