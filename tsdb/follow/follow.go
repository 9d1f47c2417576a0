package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/follow"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

var (
	// ErrInvalid is tsdb.ErrInvalid: invalid argument. A *tsdb.InvalidError names the field, the value and what is allowed.
	ErrInvalid = tsdb.ErrInvalid
	// ErrTooMany means that the store has 1,000 followers. Try again when one has been closed. A tenant that has 100 of them gets a
	// *limit.Error with limit.Followers instead.
	ErrTooMany = points.ErrTooManyFollowers
)

// Options are the position and the polls of a follower. The zero value starts now.
type Options struct {
	// After is a cursor: the follower continues behind it. Empty means to start at Since.
	After string
	// Since is the time of the oldest points that are delivered, those that are stored already included. The zero time starts with
	// what arrives from now on. It cannot be combined with After.
	Since time.Time
	// Lateness is how late the points of other processes may arrive. Zero is one minute; it is at most 24 hours. Four times in it, a poll
	// reads that far back: so a point that is late by more than 2 seconds is delivered within a quarter of it and an Interval.
	Lateness time.Duration
	// Interval is the time between two polls. Zero is 2 seconds; it is 100 milliseconds to 1 hour. Most polls read the points of the
	// Interval and of 2 seconds before.
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

func (o Options) resolve() (Options, error) {
	o.Lateness, o.Interval = cmp.Or(o.Lateness, defaultLateness), cmp.Or(o.Interval, defaultInterval)
	if o.After != "" && !o.Since.IsZero() {
		return o, invalid.New(ErrInvalid, "Since", instant.Text(o.Since.UTC()), "the zero time: After says where to continue")
	}
	return o, cmp.Or(
		invalid.Range(ErrInvalid, "Lateness", o.Lateness, 1, mostLateness, "up to 24h, or 0 for 1m"),
		invalid.Range(ErrInvalid, "Interval", o.Interval, leastInterval, mostInterval, "100ms to 1h, or 0 for 2s"),
	)
}

// MissedError means that late points of this store were dropped because the loop was too slow: read them again, for example with
// under.Range. The sequence continues behind it.
type MissedError struct {
	// Points is how many were dropped.
	Points int
	// Oldest and Newest are the first and the last of their times.
	Oldest, Newest time.Time
}

// Error implements error.
func (e *MissedError) Error() string {
	e = invalid.OrZero(e)
	return fmt.Sprintf("follow: %d late points from %s to %s were dropped because the loop is too slow",
		e.Points, instant.Text(e.Oldest), instant.Text(e.Newest))
}

// Follower delivers the new points of an entity or of a prefix. Entity and Under return one; Close ends it. Cursor and Close can be
// called while a loop over Points runs. The zero Follower delivers nothing.
type Follower[T any] struct {
	core    *follow.Follower
	decode  func(dataset.Hit) (tsdb.Point[T], error)
	time    func(units int64) time.Time
	running atomic.Bool
}

// Entity follows one entity. The context's tenant applies until Close; its end does not end the follower. An unusable
// Options.After is refused with tsdb.ErrCursor.
//
// Unless it continues or has a Since, it reads the points of the last Lateness first, which then count as delivered: one request.
func Entity[T any](ctx context.Context, repo *tsdb.Repository[T], e tsdb.Entity, opts Options) (*Follower[T], error) {
	return open(ctx, repo, inside.Of(e).Path(), false, false, opts)
}

// Under follows all entities under a prefix, also those that appear later. It is Entity in all else, and finds the entities first, at the
// cost of Repository.Entities. It refuses more than 10,000 entities with ErrInvalid, and so does Points when there are more later.
func Under[T any](ctx context.Context, repo *tsdb.Repository[T], p tsdb.Prefix, opts Options) (*Follower[T], error) {
	return open(ctx, repo, inside.Of(p).Path(), true, p == tsdb.AllEntities(), opts)
}

func open[T any](ctx context.Context, repo *tsdb.Repository[T], path string, prefix, all bool, opts Options) (_ *Follower[T], err error) {
	base := ctxerr.Given(ctx)
	ctx, op := inside.Of(repo).Begin(ctx, telemetry.FollowOpen, 0, false)
	defer func() { op.End(err) }()
	opts, err = opts.resolve()
	if err != nil {
		return nil, err
	}
	admitted, err := inside.Of(repo).Below(ctx, tsdb.AllEntities(), tsdb.AllTime(), nil, true)
	if err != nil {
		return nil, err
	}
	admitted.Done() // each poll is a read of its own
	in, err := inside.Of(repo).Internals()
	if err != nil {
		return nil, err
	}
	switch {
	case prefix && path == "" && !all:
		err = invalid.New(ErrInvalid, "prefix", "empty", "at least one part, or tsdb.AllEntities")
	case prefix:
		err = in.Space.CheckPrefix(path)
	default:
		err = in.Space.CheckPath(path)
	}
	if err != nil {
		return nil, err
	}
	core, err := follow.Open(ctx, follow.Options{
		Rows: in.Rows, Path: path, Prefix: prefix, Lateness: opts.Lateness, Interval: opts.Interval, Since: opts.Since, Base: base, Allow: in.Allow,
		Poll: func(ctx context.Context) (context.Context, func(int, error)) {
			ctx, op := inside.Of(repo).Begin(ctx, telemetry.FollowPoll, 0, false)
			return ctx, func(n int, err error) {
				op.Returned(n)
				op.End(err)
			}
		},
	}, opts.After)
	if err != nil {
		return nil, err
	}
	return &Follower[T]{core: core, decode: admitted.Decode, time: in.D.Precision.Time}, nil
}

// Points waits for new points and yields them until ctx ends; the last pair is ctx's error. Leaving the loop loses
// nothing: another call of Points continues. Only one loop at a time is allowed.
//
// A point whose payload does not decode is yielded with a *tsdb.PointError, and a *MissedError says that points were dropped; the
// sequence continues behind both. Any other error is the last pair: tsdb.ErrErased, tsdb.ErrClosed after Close of the follower or of the
// store, a limit of the tenant, or what has made five polls in a row fail. After it, too, another call of Points continues if it can.
//
// Polls run only within the loop, one at a time, so a loop that is slow or has ended sends no more requests than it takes points.
func (f *Follower[T]) Points(ctx context.Context) iter.Seq2[tsdb.Point[T], error] {
	return func(yield func(tsdb.Point[T], error) bool) {
		ctx := ctxerr.Given(ctx)
		switch {
		case f == nil || f.core == nil:
			yield(tsdb.Point[T]{}, invalid.New(ErrInvalid, "follower", "the zero value", "one from Entity or Under"))
			return
		case f.running.Swap(true):
			yield(tsdb.Point[T]{}, invalid.New(ErrInvalid, "follower", "in use by another loop", "one loop at a time"))
			return
		}
		defer f.running.Store(false)
		if err := f.core.Allow(ctx); err != nil {
			yield(tsdb.Point[T]{}, err)
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
			if !yield(tsdb.Point[T]{}, err) || !ok {
				return
			}
		}
	}
}

// Cursor returns the position behind the last point that Points has yielded, or the start. It does no I/O. It has up to 6,300
// bytes, usually fewer than 800. Without CursorKeys in tsdb.StoreOptions it shows a row key, and a forged cursor can start elsewhere in
// what is followed.
func (f *Follower[T]) Cursor() string {
	if f == nil || f.core == nil {
		return ""
	}
	return f.core.Cursor()
}

// Close ends the follower and its loop, and waits for its poll. It always returns nil. Closing it twice, or closing a nil or zero
// Follower, does nothing.
func (f *Follower[T]) Close() error {
	if f != nil && f.core != nil {
		f.core.Close()
	}
	return nil
}
