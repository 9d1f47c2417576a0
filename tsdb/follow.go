package tsdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/follow"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// FollowOptions are the position and the polls of a follower. The zero value starts now.
type FollowOptions struct {
	// After is a cursor: the follower continues behind it. Empty means to start at Since.
	After string
	// Since is the time of the oldest points that are delivered, those that are stored already included. The zero time
	// starts with what arrives from now on. It cannot be combined with After.
	Since time.Time
	// Lateness is how late the points of other processes may arrive. Zero is one minute; it is at most 24 hours. Four
	// times in it, a poll reads that far back: so a point that is late by more than 2 seconds is delivered within a
	// quarter of it and an Interval.
	Lateness time.Duration
	// Interval is the time between two polls. Zero is 2 seconds; it is 100 milliseconds to 1 hour. Most polls read the
	// points of the Interval and of 2 seconds before.
	Interval time.Duration
}

// Bounds of the options.
const (
	defaultLateness = time.Minute
	mostLateness    = 24 * time.Hour
	defaultInterval = 2 * time.Second
	leastInterval   = 100 * time.Millisecond
	mostInterval    = time.Hour
)

func (o FollowOptions) resolve() (FollowOptions, error) {
	o.Lateness, o.Interval = cmp.Or(o.Lateness, defaultLateness), cmp.Or(o.Interval, defaultInterval)
	if o.After != "" && !o.Since.IsZero() {
		return o, invalid.New(ErrInvalid, "Since", instant.Text(o.Since.UTC()), "the zero time: After says where to continue")
	}
	return o, cmp.Or(
		invalid.Range(ErrInvalid, "Lateness", o.Lateness, 1, mostLateness, "up to 24h, or 0 for 1m"),
		invalid.Range(ErrInvalid, "Interval", o.Interval, leastInterval, mostInterval, "100ms to 1h, or 0 for 2s"),
	)
}

// MissedError means that late points of this store were dropped because the loop was too slow: read them again, for
// example with PrefixReader.Range. The sequence continues behind it.
type MissedError struct {
	// Points is how many were dropped.
	Points int
	// Oldest and Newest are the first and the last of their times.
	Oldest, Newest time.Time
}

// Error implements error.
func (e *MissedError) Error() string {
	e = invalid.OrZero(e)
	return fmt.Sprintf("tsdb: %d late points from %s to %s were dropped because the loop is too slow",
		e.Points, instant.Text(e.Oldest), instant.Text(e.Newest))
}

// Follower delivers the new points of an entity, or of all entities under a prefix, as they arrive. Repository.Follow
// and PrefixReader.Follow return one; Close ends it. Cursor and Close can be called while a loop over Points runs. The
// zero Follower delivers nothing.
//
//	f, err := repo.Under(tsdb.NewPrefix("berlin")).Follow(ctx, tsdb.FollowOptions{After: saved})
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	for p, err := range f.Points(ctx) {
//		if err != nil {
//			return err
//		}
//		show(p)
//		saved = f.Cursor()
//	}
//
// # Which points, and when
//
// A point that the follower's own store stores is delivered at once, whatever its time: by Put, PutMany, PutIfAbsent, a
// Writer with or without a journal, or an import. Points of other stores and processes are found by polling, so they
// come up to FollowOptions.Interval later. Order is the order of arrival at this store: that of its own writes, and
// that in which polls find the others. A poll finds points by entity, and each entity's oldest first.
//
// The table does not show when a point was written. So a poll reads the points of the last FollowOptions.Lateness
// again, and remembers which of them it has delivered. A point of another process is found if its time is at most
// Lateness before the moment at which it can be read, by the clock of the follower's store. Later ones are missed: a
// device that sends a day's points at once, through another process, needs a Lateness of a day, or a read of the range.
// Lateness must also cover the difference between the clocks of devices and store and, with replication, the
// replication delay: a point that the store's app profile cannot read yet arrives when it can. A point in the future is
// delivered when it is found.
//
//   - Each value is delivered once. A point that is written again with another value is delivered again; with the same
//     value it is not, within Lateness. Of several values that overwrite each other between two polls, the follower
//     sees the last.
//   - A merged point is delivered as it is stored then, with the fields of all writes.
//   - A deletion is not delivered. A point that was deleted or overwritten before a poll is missed. A point that this
//     store wrote is delivered even if it is deleted before the loop takes it.
//   - An expired point is not delivered. If the tenant or the dataset is erased, Points ends with ErrErased. Points of
//     an entity that is erased are not found any more.
//   - A write whose outcome is unknown (ErrUnknown) is delivered if a poll finds it.
//   - In a schema with Head.Only, a poll sees at most the newest Head.Points points of each entity.
//   - Rollups are not followed.
//
// # The position
//
// Cursor returns the position behind the last point that the loop took. It is bound to tenant, dataset, and entity or
// prefix, and sealed like the cursors of pages. With it, FollowOptions.After continues in any process: all points since
// then are delivered, if they are not later than Lateness. Points that other processes or this one stored late, while
// nobody followed, are missed.
//
// The cursor remembers the last 64 delivered points. If more than 64 points have arrived within Lateness and two polls,
// some of these can be delivered a second time after a restart. Points have keys: entity, time and ID identify the
// repeated ones. A follower that was not restarted delivers none twice, unless more than 65,536 points arrive within
// Lateness. Then it remembers the youngest, and the window in which it finds late points gets shorter.
//
// # Slow loops
//
// A follower never delays a write or another follower. It queues up to 1,024 points or 1 MiB of this store's writes. If
// the loop is too slow for that, it drops the queue and reads on from its position, as after a restart. Dropped points
// that are later than Lateness cannot be found by reading: Points then yields a *MissedError with their times, and
// continues.
//
// # Cost
//
// A poll of n entities costs one request per 125 entities, at most 16, and reads the rows of the last Lateness. With
// more than 2,000 entities a sweep takes several polls. PrefixReader.Follow finds the entities at the cost of
// PrefixReader.Entities and reads the window once; each new entity costs one more request. In a schema with Head.Only a
// poll is one request for the heads of all entities. A poll counts as a read against the tenant's limits, and the
// window as the length of its range. Requests that the limits or the service refuse are repeated later, up to five
// times in a row.
//
// Memory: up to 1 MiB of queue, 4 MiB of points that a poll found, and about 50 bytes per remembered point. A prefix
// has at most 10,000 entities, a store at most 1,000 followers (ErrTooManyFollowers), and a tenant 100 of them
// (limit.Followers). A write costs nothing more if nobody follows, and else one comparison per follower of its tenant
// and dataset.
type Follower[T any] struct {
	core    *follow.Follower
	decode  func(dataset.Hit) (Point[T], error)
	time    func(units int64) time.Time
	running atomic.Bool
}

// Follow follows one entity. The context's tenant applies until Close; its end does not end the follower. An unusable
// FollowOptions.After is refused with ErrCursor.
//
// Unless it continues or has a Since, it reads the points of the last Lateness first, which then count as delivered:
// one request.
func (r *Repository[T]) Follow(ctx context.Context, e Entity, opts FollowOptions) (*Follower[T], error) {
	a := r.part()
	return r.follower(a.follow(ctx, false, e.path, opts, func(ctx context.Context) error { return a.admitEntity(ctx, e) }))
}

// Follow follows all entities under the prefix, also those that appear later. It is Repository.Follow in all else, and
// finds the entities first, at the cost of Entities. It refuses more than 10,000 entities with ErrInvalid, and so does
// Points when there are more later.
func (u PrefixReader[T]) Follow(ctx context.Context, opts FollowOptions) (*Follower[T], error) {
	a := u.repo.part()
	return u.repo.follower(a.follow(ctx, true, u.prefix.path, opts, func(ctx context.Context) error { return a.admitPrefix(ctx, u.prefix) }))
}

// follower returns the result of Follow for that of follow.
func (r *Repository[T]) follower(core *follow.Follower, err error) (*Follower[T], error) {
	if err != nil {
		return nil, err
	}
	return &Follower[T]{core: core, decode: r.decode, time: r.rows.D.Precision.Time}, nil
}

// follow follows the entity at a path, or all entities under a prefix.
func (a *access) follow(ctx context.Context, prefix bool, path string, opts FollowOptions, admit func(context.Context) error) (_ *follow.Follower, err error) {
	base := ctxerr.Given(ctx)
	ctx, op := a.begin(ctx, telemetry.FollowOpen)
	defer func() { op.End(err) }()
	opts, err = opts.resolve()
	if err == nil {
		err = admit(ctx)
	}
	if err != nil {
		return nil, err
	}
	done, err := a.rows.BeginWideRead(&points.Options{Width: 1})
	if err != nil {
		return nil, err
	}
	done() // each poll is a read of its own
	return follow.Open(ctx, follow.Options{
		Rows: &a.rows, Path: path, Prefix: prefix, Lateness: opts.Lateness, Interval: opts.Interval, Since: opts.Since, Base: base, Allow: a.admit,
		Poll: func(ctx context.Context) (context.Context, func(int, error)) {
			ctx, op := a.begin(ctx, telemetry.FollowPoll)
			return ctx, func(n int, err error) {
				op.Returned(n)
				op.End(err)
			}
		},
	}, opts.After)
}

// Points waits for new points and yields them until ctx ends; the last pair is ctx's error. Leaving the loop loses
// nothing: another call of Points continues. Only one loop at a time is allowed.
//
// A point whose payload does not decode is yielded with a *PointError, and a *MissedError says that points were
// dropped; the sequence continues behind both. Any other error is the last pair: ErrErased, ErrClosed after Close of
// the follower or of the store, a limit of the tenant, or what has made five polls in a row fail. After it, too,
// another call of Points continues if it can.
//
// Polls run only within the loop, one at a time, so a loop that is slow or has ended sends no more requests than it
// takes points.
func (f *Follower[T]) Points(ctx context.Context) iter.Seq2[Point[T], error] {
	return func(yield func(Point[T], error) bool) {
		ctx := ctxerr.Given(ctx)
		switch {
		case f == nil || f.core == nil:
			yield(Point[T]{}, invalid.New(ErrInvalid, "follower", "the zero value", "one from Follow"))
			return
		case f.running.Swap(true):
			yield(Point[T]{}, invalid.New(ErrInvalid, "follower", "in use by another loop", "one loop at a time"))
			return
		}
		defer f.running.Store(false)
		if err := f.core.Allow(ctx); err != nil {
			yield(Point[T]{}, err)
			return
		}
		for {
			h, err := f.core.Next(ctx)
			if err == nil {
				if !yield(f.decode(h)) {
					return
				}
				continue
			}
			lost, ok := errors.AsType[*follow.Missed](err)
			if ok {
				err = &MissedError{Points: lost.Points, Oldest: f.time(lost.Oldest), Newest: f.time(lost.Newest)}
			}
			if !yield(Point[T]{}, err) || !ok {
				return
			}
		}
	}
}

// Cursor returns the position behind the last point that Points has yielded, or the start. It does no I/O. It has up to
// 6,300 bytes, usually fewer than 800. Without CursorKeys in StoreOptions it shows a row key, and a forged cursor can
// start elsewhere in what is followed.
func (f *Follower[T]) Cursor() string {
	if f == nil || f.core == nil {
		return ""
	}
	return f.core.Cursor()
}

// Close ends the follower and its loop, and waits for its poll. It always returns nil. Closing it twice, or closing a
// nil or zero Follower, does nothing.
func (f *Follower[T]) Close() error {
	if f != nil && f.core != nil {
		f.core.Close()
	}
	return nil
}
