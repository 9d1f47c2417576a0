package window

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Outage is a time in which an entity sent nothing.
type Outage struct {
	// From is the time of the last point before it. It is zero if the store has none.
	From time.Time `json:"from,omitzero"`
	// To is the time of the first point after it. It is zero if the store has none: the outage goes on.
	To time.Time `json:"to,omitzero"`
}

// MarshalJSON implements json.Marshaler.
func (o Outage) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		From instant.Time `json:"from,omitzero"`
		To   instant.Time `json:"to,omitzero"`
	}{instant.Time{Time: o.From}, instant.Time{Time: o.To}})
}

// between returns how much of the outage is between two times.
func (o Outage) between(start, end time.Time) Span {
	return spanOf(clip(start, end, o.From, o.To))
}

// Outages returns the times in an interval in which an entity sent nothing for longer than a duration, newest first or
// in another tsdb.Order. The points next to the interval count: an outage that starts before the interval or ends after
// it is as long as it really was. Without a point after it, an outage lasts to the end of the interval, which should
// not be in the future. Before its first point the entity is out, however short that is; points that have expired or
// were deleted are not known.
//
// A point that does not decode counts as sent. The interval has a start and an end. Errors are the last pair; those of
// the arguments match tsdb.ErrInvalid.
//
// It costs what the repository's Range costs for the interval, plus two reads of one point, which do not count towards
// the tenant's limits. It holds one point in memory. It accepts and ignores a tsdb.Concurrency, a tsdb.Hedge and a
// tsdb.MaxStale.
func Outages[T any](ctx context.Context, from Ranger[T], e tsdb.Entity, in tsdb.Interval, longer time.Duration, opts ...tsdb.ReadOption) iter.Seq2[Outage, error] {
	return func(yield func(Outage, error) bool) {
		s, err := newSilence(from, in, longer, opts)
		if err == nil {
			err = silences(ctxerr.Given(ctx), from, e, s, func(o Outage) bool { return yield(o, nil) })
		}
		if err != nil {
			yield(Outage{}, err)
		}
	}
}

// Uptime is how long an entity was reporting in a bucket. Its JSON is
// {"start":…,"end":…,"up_s":3500,"down_s":100,"outages":1}.
type Uptime struct {
	// Start and End are those of the bucket, in the grid's zone.
	Start, End time.Time
	// Partial says that the interval covers only part of the bucket.
	Partial bool
	// Down is how much of the bucket is in an outage, and Up the rest of its part in the interval.
	Up, Down Span
	// Outages is how many outages the bucket has a part of.
	Outages int64
}

// MarshalJSON implements json.Marshaler. Up and Down are in seconds.
func (u Uptime) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Start   instant.Time `json:"start"`
		End     instant.Time `json:"end"`
		Partial bool         `json:"partial,omitempty"`
		Up      float64      `json:"up_s"`
		Down    float64      `json:"down_s"`
		Outages int64        `json:"outages"`
	}{instant.Time{Time: u.Start}, instant.Time{Time: u.End}, u.Partial, u.Up.Seconds(), u.Down.Seconds(), u.Outages})
}

// ReadUptime returns how long an entity was reporting in each bucket of an interval: all of the time that is not in one
// of its [Outages]. It returns all buckets, also those without a point. For the whole interval, add them up. Order,
// errors and cost are those of Outages.
func ReadUptime[T any](
	ctx context.Context, grid Grid, from Ranger[T], e tsdb.Entity, in tsdb.Interval, longer time.Duration, opts ...tsdb.ReadOption,
) iter.Seq2[Uptime, error] {
	return func(yield func(Uptime, error) bool) {
		s, err := newSilence(from, in, longer, opts)
		if err == nil {
			err = frame{Grid: grid, Interval: in, Order: s.order}.check()
		}
		if err == nil {
			_, _, err = frame{Interval: in}.bounds()
		}
		if err != nil || !s.start.Before(s.end) {
			if err != nil {
				yield(Uptime{}, err)
			}
			return
		}
		ctx := ctxerr.Given(ctx)
		u := uptimes{silence: s, grid: grid, yield: yield}
		first := s.start
		if s.order == tsdb.NewestFirst {
			first = s.end.Add(-1)
		}
		u.turn(first)
		err = silences(ctx, from, e, s, u.add)
		for err == nil && u.more {
			if err = ctx.Err(); err == nil {
				u.next()
			}
		}
		if err != nil && !u.stopped {
			yield(Uptime{}, err)
		}
	}
}

// uptimes is one loop over the result of ReadUptime.
type uptimes struct {
	silence
	grid    Grid
	yield   func(Uptime, error) bool
	bucket  Uptime
	more    bool // bucket is one of the interval
	stopped bool // the caller left the loop
}

// turn makes the bucket that contains t the open one.
func (u *uptimes) turn(t time.Time) {
	b := Bucket{}
	b.Start, b.End = u.grid.bucket(t)
	f := frame{Interval: u.in}
	u.bucket, u.more = Uptime{Start: b.Start, End: b.End, Partial: f.cut(&b)}, true
}

// span returns the part of the open bucket in the interval.
func (u *uptimes) span() (from, to time.Time) {
	return clip(u.bucket.Start, u.bucket.End, u.start, u.end)
}

// next yields the open bucket and opens the next one. It reports whether there is one.
func (u *uptimes) next() bool {
	from, to := u.span()
	u.bucket.Up = spanOf(from, to).sub(u.bucket.Down)
	b := u.bucket
	u.more = false
	switch {
	case !u.yield(b, nil):
		u.stopped = true
	case u.order == tsdb.OldestFirst && b.End.Before(u.end):
		u.turn(b.End)
	case u.order == tsdb.NewestFirst && u.start.Before(b.Start):
		u.turn(b.Start.Add(-1))
	}
	return u.more
}

// add adds an outage to its buckets, and reports whether the caller wants more.
func (u *uptimes) add(o Outage) bool {
	for {
		from, to := u.span()
		if part := o.between(from, to); part != (Span{}) {
			u.bucket.Down = u.bucket.Down.add(part)
			u.bucket.Outages++
		}
		beyond := o.To.IsZero() || to.Before(o.To)
		if u.order == tsdb.NewestFirst {
			beyond = o.From.Before(from)
		}
		if !beyond {
			return true
		}
		if !u.next() {
			return !u.stopped
		}
	}
}

// silence says which outages are looked for.
type silence struct {
	in         tsdb.Interval
	start, end time.Time
	longer     time.Duration
	order      tsdb.Order
}

func newSilence[T any](from Ranger[T], in tsdb.Interval, longer time.Duration, opts []tsdb.ReadOption) (silence, error) {
	s := silence{in: in, longer: longer}
	if from == nil {
		return s, invalid.New(tsdb.ErrInvalid, "ranger", "nil", "a repository")
	}
	var err error
	if s.order, _, err = inside.Of(in).ReadOptions(opts); err != nil {
		return s, err
	}
	if longer <= 0 {
		return s, invalid.New(tsdb.ErrInvalid, "longest silence", longer.String(), "more than 0")
	}
	s.start, s.end, err = closed(in)
	return s, err
}

// closed returns the ends of an interval that must have both.
func closed(in tsdb.Interval) (start, end time.Time, err error) {
	if err := (frame{Grid: Days(1), Interval: in}).check(); err != nil {
		return start, end, err
	}
	start, hasStart := in.Start()
	end, hasEnd := in.End()
	if !hasStart || !hasEnd {
		return start, end, invalid.New(tsdb.ErrInvalid, "interval", "open", "an interval with a start and an end")
	}
	return start, end, nil
}

// found returns the outage between two adjacent points, and whether it is one in the interval. Each of them may be
// missing: the zero time is long ago.
func (s *silence) found(older, newer time.Time) (Outage, bool) {
	o := Outage{From: older, To: newer}
	if newer.IsZero() {
		newer = s.end
	}
	return o, newer.Sub(older) > s.longer && o.between(s.start, s.end) != (Span{})
}

// silences visits the outages of an entity until visit returns false.
func silences[T any](ctx context.Context, from Ranger[T], e tsdb.Entity, s silence, visit func(Outage) bool) error {
	if !s.start.Before(s.end) {
		return nil
	}
	oldestFirst := s.order == tsdb.OldestFirst
	last, err := nearestPoint(ctx, from, e, s.in, oldestFirst)
	if err != nil {
		return err
	}
	between := func(t time.Time) (more bool) {
		older, newer := last, t
		if !oldestFirst {
			older, newer = t, last
		}
		last = t
		o, ok := s.found(older, newer)
		return !ok || visit(o)
	}
	for p, err := range from.Range(ctx, e, s.in, s.order) {
		t := p.Time
		if err != nil {
			bad, ok := pointError(err)
			if !ok {
				return err
			}
			t = bad.Time
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !between(t) {
			return nil
		}
	}
	t, err := nearestPoint(ctx, from, e, s.in, !oldestFirst)
	if err == nil {
		between(t)
	}
	return err
}

// nearestPoint returns the time of the last point before an interval or of the first one after it, zero without one.
func nearestPoint[T any](ctx context.Context, from Ranger[T], e tsdb.Entity, in tsdb.Interval, before bool) (t time.Time, err error) {
	err = outside(ctx, from, e, in, before, 1, func(p tsdb.Point[T], _ error) bool {
		t = p.Time
		return false
	})
	return t, err
}
