// Package follow delivers the points of an entity, or of the entities below a prefix, as they arrive at a store: those
// that the store itself stores at once, and those of other processes by reading again and again.
//
// The timestamp of a cell is its point's time, so the table does not show when a point was written. A follower
// therefore sweeps: a whole sweep reads all points that are younger than the start of the whole sweep before, less the
// lateness, and the follower knows which of them it has delivered. So it finds a point that arrives later than its time
// by up to the lateness. Between whole sweeps, short ones do the same with a lateness of two seconds, because most
// points arrive soon.
package follow

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/reach"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// Failed polls are repeated after a wait that doubles from the interval up to longestWait. After maxFailures in a row
// the error is returned.
const (
	maxFailures = 5
	longestWait = time.Minute
)

const (
	// wholeSweeps is how many whole sweeps begin within the lateness, so how often they read a point.
	wholeSweeps = 4
	// shortLateness is the lateness of short sweeps.
	shortLateness = 2 * time.Second
)

// Options say what to follow.
type Options struct {
	Rows     *points.Rows
	Path     string // of the entity, or of the prefix; "" is all entities
	Prefix   bool
	Lateness time.Duration
	Interval time.Duration
	Since    time.Time // the zero time is now
	// Base is the context of polls. Its end does not end the follower.
	Base context.Context
	// Allow admits a poll, or the delivery of points.
	Allow func(context.Context) error
	// Poll observes a poll that read some rows.
	Poll func(ctx context.Context) (_ context.Context, end func(rows int, err error))
}

// Follower delivers points. Close ends it. Next must not be called by two goroutines at once.
type Follower struct {
	Options
	sub   *points.Subscription
	base  context.Context
	stop  context.CancelFunc
	polls sync.WaitGroup
	done  chan polled // of the poll under way

	// Only Next uses these:
	own      []points.Arrival // taken from the queue
	known    []entity         // below the prefix, in the order of keys; a poll that is under way uses it
	polling  bool
	failures int
	due      time.Time // of the next poll
	whole    time.Time // from which on a sweep is a whole one
	timer    *time.Timer

	batch []item // what the last poll has found

	mu     sync.Mutex // guards the rest, which polls, Cursor and Close use too
	seen   seen
	floor  int64  // of the sweep under way, or of the next one, in units
	late   int64  // lateUnits at the beginning of the last sweep
	recent int64  // the floor of the next short sweep
	sweep  *sweep // under way; nil for none
	closed bool
}

// polled is the result of a poll.
type polled struct {
	items []item
	rows  int  // that were read, with points that are not new
	bytes int  // of their payloads
	more  bool // it was cut because it had found enough
	err   error
}

// item is a point that a poll has found.
type item struct {
	dataset.Hit
	keys  keys
	row   string // the key of its row
	since uint64 // seen.arrivals when the poll began
}

// Missed is the error about points that Next could not deliver. The follower goes on.
type Missed points.Lost

// Error implements error.
func (m *Missed) Error() string {
	return "tsdb: " + strconv.Itoa(m.Points) + " late points arrived while the follower did not take any, and were dropped"
}

// Open begins to follow. text is a cursor, or empty: then it starts at Since.
func Open(ctx context.Context, o Options, text string) (*Follower, error) {
	f := &Follower{Options: o, done: make(chan polled, 1), seen: newSeen()}
	var place place
	if text != "" {
		var err error
		if place, err = f.read(text); err != nil {
			return nil, err
		}
	}
	if err := o.Allow(ctx); err != nil {
		return nil, err
	}
	takes := func(path string) bool { return path == o.Path }
	if o.Prefix {
		takes = func(path string) bool {
			rest, ok := strings.CutPrefix(path, o.Path)
			return ok && (o.Path == "" || rest != "" && rest[0] == '#')
		}
	}
	var err error
	if f.sub, err = o.Rows.Feed.Subscribe(o.Rows.Space, takes, o.Rows.Time.Earliest, f.oldestAt); err != nil {
		return nil, err
	}
	f.base, f.stop = context.WithCancel(context.WithoutCancel(o.Base))
	f.late = f.lateUnits()
	if err := f.begin(ctx, text != "", place); err != nil {
		f.Close()
		return nil, err
	}
	f.due = time.Now()
	return f, nil
}

// begin finds the position. Without a cursor the points that are there already count as delivered, unless they are
// asked for.
func (f *Follower) begin(ctx context.Context, resumed bool, p place) error {
	if err := f.discover(ctx); err != nil {
		return err
	}
	if resumed {
		f.floor = p.floor
		f.seen.resume(p.pairs)
		f.sweep = newSweep(f, f.floor, f.lateUnits())
		if p.row != "" {
			reach.Point(reach.ResumedSweep)
			f.sweep.next = p.next
			f.sweep.skip(p.row)
		}
		return nil
	}
	f.floor = f.lateUnits()
	if !f.Since.IsZero() {
		if units, ok := f.Rows.D.Precision.AtOrAfter(f.Since); ok {
			f.floor = units
			f.sweep = newSweep(f, f.floor, f.lateUnits())
			return nil
		}
	}
	// What is stored from now on is found by the first sweep of Next, whose floor is this time.
	f.sweep = newSweep(f, f.floor, f.floor)
	for !f.sweep.over() {
		if _, err := f.poll(ctx, f.sweep, true); err != nil {
			return err
		}
	}
	return nil
}

// lateUnits returns the time before which a point that arrives now is late.
func (f *Follower) lateUnits() int64 { return f.oldestAt(f.Rows.Time.Earliest()) }

// oldestAt returns the time of the oldest point that arrives at a time and is not late.
func (f *Follower) oldestAt(now time.Time) int64 { return f.unitsFrom(now.Add(-f.Lateness)) }

// unitsFrom returns a time in units, rounded up.
func (f *Follower) unitsFrom(t time.Time) int64 {
	units, ok := f.Rows.D.Precision.AtOrAfter(t)
	if !ok {
		return f.Rows.D.Precision.Max()
	}
	return units
}

// Close ends the follower, and waits for its poll. Closing it twice does nothing.
func (f *Follower) Close() {
	f.sub.Close()
	f.stop()
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.polls.Wait()
}

// Next waits for the next point until ctx ends. After an error, Next can be called again.
func (f *Follower) Next(ctx context.Context) (dataset.Hit, error) {
	for {
		if err := ctxerr.Of(ctx); err != nil {
			return dataset.Hit{}, err
		}
		if err := f.Allow(ctx); err != nil { // the tenant may have been erased since
			return dataset.Hit{}, err
		}
		if h, ok, err := f.take(); ok || err != nil {
			return h, err
		}
		if err := f.wait(ctx); err != nil {
			return dataset.Hit{}, err
		}
	}
}

// take returns a point that is there: one of this store's own first.
func (f *Follower) take() (h dataset.Hit, ok bool, err error) {
	if len(f.own) == 0 {
		own, full, lost, open := f.sub.Take()
		if !open {
			return h, false, bt.ErrClosed
		}
		f.own = own
		if full {
			f.due, f.whole = time.Time{}, time.Time{} // what was dropped has to be read
		}
		if lost.Points > 0 {
			return h, false, (*Missed)(&lost)
		}
	}
	visible := f.Rows.Visibility().Oldest()
	for len(f.own) > 0 {
		a := f.own[0]
		f.own = f.own[1:]
		h := f.hit(a)
		if a.Units >= visible && f.arrived(h) {
			return h, true, nil
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.batch) > 0 {
		i := f.batch[0]
		f.batch = f.batch[1:]
		if f.sweep != nil {
			f.sweep.place = i.row
		}
		if i.Units >= visible && f.seen.found(i.keys, i.Units, i.since) {
			f.narrow()
			return i.Hit, true, nil
		}
	}
	if !f.polling && f.sweep != nil && f.sweep.over() {
		f.floor = f.sweep.next
		f.seen.forget(f.floor)
		f.sweep = nil
	}
	return h, false, nil
}

// hit returns a point of this store as a read would return it.
func (f *Follower) hit(a points.Arrival) dataset.Hit {
	h := dataset.Hit{Path: a.Path, Units: a.Units, ID: a.ID, Payload: a.Payload}
	h.Tag, h.Err = f.Rows.D.TagOf(a.Tag)
	return h
}

// arrived takes in a point of this store, and reports whether it is to be delivered.
func (f *Follower) arrived(h dataset.Hit) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh := f.seen.arrived(keysOf(f.Rows.D, h), h.Units)
	f.narrow()
	return fresh
}

// narrow shortens the window if too many points have arrived in it.
func (f *Follower) narrow() {
	oldest, ok := f.seen.shrink()
	if !ok {
		return
	}
	if f.sweep != nil {
		f.sweep.next = max(f.sweep.next, min(oldest, f.sweep.began))
	} else {
		f.floor = max(f.floor, oldest)
	}
}

// wait waits until there may be something to take.
func (f *Follower) wait(ctx context.Context) error {
	if !f.polling && !time.Now().Before(f.due) {
		f.start()
	}
	var due <-chan time.Time
	if !f.polling {
		if f.timer == nil {
			f.timer = time.NewTimer(time.Until(f.due))
		} else {
			f.timer.Reset(time.Until(f.due))
		}
		defer f.timer.Stop()
		due = f.timer.C
	}
	select {
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-f.sub.Ready:
	case <-due:
	case p := <-f.done:
		return f.polledAll(p)
	}
	return nil
}

// nextSweep returns the sweep after the last one. If the clock was set back since, it goes back, too: it would find
// nothing until the clock has caught up. What it finds before the former floor counts as delivered, since most of it
// was, and is no longer known.
func (f *Follower) nextSweep() *sweep {
	now, late, recent := time.Now(), f.lateUnits(), f.unitsFrom(f.Rows.Time.Earliest().Add(-min(f.Lateness, shortLateness)))
	back := late < f.late && late < f.floor
	floor := min(f.recent, recent) // the clock may have been set back by less than that
	f.late, f.recent = late, recent
	if !back && now.Before(f.whole) {
		s := newSweep(f, max(f.floor, floor), f.floor)
		s.next = f.floor // whole sweeps go on from there
		return s
	}
	f.whole = now.Add(f.Lateness / wholeSweeps)
	if !back {
		return newSweep(f, f.floor, late)
	}
	s := newSweep(f, late, late)
	s.delivered = f.floor
	return s
}

// start starts a poll in the background.
func (f *Follower) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	if f.sweep == nil {
		f.sweep = f.nextSweep()
	}
	s := f.sweep
	f.polling = true
	f.polls.Go(func() {
		p, err := f.poll(f.base, s, false)
		p.err = err
		f.done <- p
	})
}

// polledAll takes in the result of a poll.
func (f *Follower) polledAll(p polled) error {
	f.polling = false
	f.batch = append(f.batch, p.items...)
	now := time.Now()
	if p.err == nil {
		f.failures = 0
		f.due = now.Add(f.Interval)
		if p.more && !f.sweep.over() {
			f.due = now
		}
		return nil
	}
	wait := min(longestWait, f.Interval<<f.failures)
	f.failures++
	again := bt.Retryable(p.err) || errors.Is(p.err, context.DeadlineExceeded)
	if over, ok := errors.AsType[*limit.Error](p.err); ok {
		again, wait = over.RetryAfter > 0, max(wait, over.RetryAfter)
	}
	f.due = now.Add(wait)
	if again && f.failures < maxFailures {
		return nil
	}
	f.failures = 0
	return p.err
}

// Cursor returns the position behind the last point that Next has returned.
func (f *Follower) Cursor() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := place{floor: f.floor}
	if f.sweep != nil && f.sweep.place != "" {
		p.row, p.next = f.sweep.place, max(f.sweep.next, f.floor) // less if the clock was set back
	}
	p.pairs = f.seen.recent(p.floor)
	return f.Rows.Cursors.Write(f.scope(), p.append(nil))
}

func (f *Follower) scope() cursor.Scope {
	s := f.Rows.Scope(cursor.Followed, f.Path)
	s.Reverse = f.Prefix // an entity and a prefix never have the same path
	return s
}
