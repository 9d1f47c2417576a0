package web

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	// heartbeat is the longest silence of a stream. A page takes a stream that is silent for three of them for broken.
	heartbeat = 5 * time.Second
	// together is how long points are collected before they are sent, so that a fleet that sends all the time costs few
	// events.
	together = 300 * time.Millisecond
	// maxWaiting is how many points of single entities wait for a slow client.
	maxWaiting = 4_096
	// pollInterval is how long points of other processes take at most.
	pollInterval = time.Second
)

// waiting is points that have not been sent. It is bounded: of a fleet, only the newest point of each entity waits; of
// single entities, points that do not fit are counted as missed, and the page reads them again.
type waiting struct {
	newestOnly bool
	most       int

	mu     sync.Mutex
	at     map[tsdb.Entity]int
	rows   []row
	missed int
	signal chan struct{} // has one value if there is something to send
}

func newWaiting(newestOnly bool) *waiting {
	w := &waiting{newestOnly: newestOnly, most: maxWaiting, at: map[tsdb.Entity]int{}, signal: make(chan struct{}, 1)}
	if newestOnly {
		w.most = maxFleet
	}
	return w
}

func (w *waiting) add(r row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i, ok := w.at[r.Entity]; w.newestOnly && ok {
		w.rows[i].merge(&r)
		return
	}
	if len(w.rows) >= w.most {
		w.missed++
	} else {
		if w.newestOnly {
			w.at[r.Entity] = len(w.rows)
		}
		w.rows = append(w.rows, r)
	}
	w.wake()
}

// merge sets what another point of the entity has that is newer.
func (r *row) merge(other *row) {
	older, newer := r, other
	if other.Time < r.Time {
		older, newer = other, r
	}
	values, times := slices.Clone(newer.Values), slices.Clone(newer.Times)
	for i, v := range older.Values {
		if older.at(i) <= newer.at(i) {
			continue
		}
		if times == nil {
			times = slices.Repeat(numbers{math.NaN()}, len(values))
		}
		values[i], times[i] = v, older.at(i)
	}
	*r = row{Entity: newer.Entity, Parts: newer.Parts, Time: newer.Time, Values: values, Times: times, Bad: newer.Bad}
}

// at is the time of a value, or -1 without one.
func (r *row) at(i int) float64 {
	switch {
	case r.Values[i] == nil:
		return -1
	case r.Times == nil || math.IsNaN(r.Times[i]):
		return r.Time
	}
	return r.Times[i]
}

func (w *waiting) miss(points int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed += points
	w.wake()
}

func (w *waiting) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

func (w *waiting) take() (rows []row, missed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows, missed = w.rows, w.missed
	w.rows, w.missed = nil, 0
	clear(w.at)
	return rows, missed
}

// live answers with new points as server-sent events: of the entities that are named, or of all below a prefix. Events
// are "points", with the newest point of each entity of a fleet or all points of single entities; "missed", if the page
// has to read them again; and "problem", the last one.
func (s *Console) live(w http.ResponseWriter, r request) error {
	d, repo, err := s.dataset(r)
	if err != nil {
		return err
	}
	_, single := r.params.values["entity"]
	var entities []tsdb.Entity
	var prefix tsdb.Prefix
	most := maxFields
	if single {
		entities = r.params.entities(maxEntities)
	} else {
		prefix, most = r.params.prefix(d), maxListFields
	}
	names := r.params.fields(most)
	opts := tsdb.FollowOptions{Interval: pollInterval}
	if _, ok := r.params.values["since"]; ok {
		opts.Since = r.params.instant("since")
	}
	if err := r.params.check(); err != nil {
		return err
	}
	var all []*tsdb.Follower[codec.Record]
	defer func() {
		for _, f := range all {
			_ = f.Close() // always nil
		}
	}()
	if !single {
		f, err := repo.Under(prefix).Follow(r.Context(), opts)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	for _, e := range entities {
		f, err := repo.Follow(r.Context(), e, opts)
		if err != nil {
			return err
		}
		all = append(all, f)
	}

	ctx, cancel := context.WithCancelCause(r.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	queue := newWaiting(!single)
	for _, f := range all {
		running.Go(func() { cancel(collect(ctx, f, names, queue, d)) })
	}
	out := stream{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies pass each event on at once
	err = out.event("open", map[string]float64{"now": millis(time.Now()), "beat_ms": inMillis(heartbeat)})
	for err == nil {
		err = out.next(ctx, queue)
	}
	if errors.Is(err, errGone) {
		return nil
	}
	if p := s.note(r.Request, err); p != nil {
		_ = out.event("problem", p)
	}
	return nil
}

// collect puts points into the queue until the context or the follower ends, and returns why.
func collect(ctx context.Context, f *tsdb.Follower[codec.Record], names []string, queue *waiting, d *dataset) error {
	for p, err := range f.Points(ctx) {
		if missed, ok := errors.AsType[*tsdb.MissedError](err); ok {
			queue.miss(missed.Points)
			continue
		}
		if err != nil && !bad(err) {
			return err
		}
		one := row{Entity: p.Entity, Time: millis(p.Time), Bad: err != nil}
		if queue.newestOnly {
			one.Parts = d.parts(p.Entity) // it may be new
			one.Values = d.valuesOf(names, p.Value, maxListed)
		} else {
			one.Values = valuesOf(names, p.Value, maxText)
		}
		queue.add(one)
	}
	return ctx.Err()
}

// errGone says that an event could not be sent.
var errGone = errors.New("the client has gone")

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	last    time.Time // of points
}

// next waits for points and sends them, or a comment after a silence.
func (o *stream) next(ctx context.Context, queue *waiting) error {
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-beat.C:
		return o.send(": still here\n\n")
	case <-queue.signal:
	}
	pause := time.NewTimer(together - min(together, time.Since(o.last)))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-pause.C:
	}
	o.last = time.Now()
	rows, missed := queue.take()
	if len(rows) > 0 {
		if err := o.event("points", map[string]any{"rows": rows}); err != nil {
			return err
		}
	}
	if missed > 0 {
		return o.event("missed", map[string]int{"points": missed})
	}
	return nil
}

func (o *stream) event(name string, value any) error {
	body, err := json.Marshal(value) // on one line
	if err != nil {
		return problem{Status: http.StatusInternalServerError, Detail: "A point cannot be written as JSON."}
	}
	return o.send("event: " + name + "\ndata: " + string(body) + "\n\n")
}

// send sends text. A client that does not take it in time is disconnected.
func (o *stream) send(text string) error {
	_ = o.control.SetWriteDeadline(time.Now().Add(sendTime)) // some writers of tests have none
	if _, err := o.w.Write([]byte(text)); err != nil {
		return errGone
	}
	if err := o.control.Flush(); err != nil {
		return errGone
	}
	return nil
}
