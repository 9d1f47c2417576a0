package rollup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// ErrTooManyMessages: the row remembers Options.MaxMessages messages. It accepts new ones when old ones leave
// Options.Remember. Compare with errors.Is.
var ErrTooManyMessages = rollupadd.ErrTooManyMessages

const (
	defaultRemember    = 24 * time.Hour
	mostRemember       = 30 * 24 * time.Hour
	defaultMaxMessages = 10_000
	mostMessages       = 100_000
	leastMessages      = 16
)

// resolveMessages resolves the options that only rollups of mode ByMessage have.
func (r *Rollup[T]) resolveMessages() error {
	o := &r.opts
	if o.Mode != ByMessage {
		if o.Remember != 0 || o.MaxMessages != 0 {
			return invalid.New(tsdb.ErrInvalid, "Remember and MaxMessages", fmt.Sprintf("%v and %d", o.Remember, o.MaxMessages), "0 for a rollup whose mode is not ByMessage")
		}
		return nil
	}
	o.Remember, o.MaxMessages = cmp.Or(o.Remember, defaultRemember), cmp.Or(o.MaxMessages, defaultMaxMessages)
	if o.Remember < time.Minute || o.Remember > mostRemember || o.Remember%time.Millisecond != 0 {
		return invalid.New(tsdb.ErrInvalid, "Remember", o.Remember.String(), fmt.Sprintf("0 for the default, or 1m to %v in whole milliseconds", mostRemember))
	}
	if o.MaxMessages < leastMessages || o.MaxMessages > mostMessages {
		return invalid.New(tsdb.ErrInvalid, "MaxMessages", strconv.Itoa(o.MaxMessages), fmt.Sprintf("0 for the default, or %d to %d", leastMessages, mostMessages))
	}
	return nil
}

// Adder adds events to a rollup whose mode is not Derived. NewAdder makes one. It holds no resources and is safe for
// concurrent use.
type Adder[T any] struct {
	rollup *Rollup[T]
	repo   *tsdb.Repository[T]
	writer *tsdb.Writer
}

// NewAdder returns an adder for the tenant of a repository. It does no I/O and cannot fail: each call reports
// what is wrong with the arguments. The mode of the rollup decides how events are added:
//
//   - Once: Add and AddMany write to the table. They do not use the writer: nil is enough.
//   - ByMessage: AddMessage writes to the table. It does not use the writer: nil is enough.
//   - ByStream: Add, AddFunc and AddMany write to the journal of the writer, which belongs to the same store.
//
// The other calls fail.
//
// A journal numbers the events, and each row stores the highest number it contains of each journal. So each event
// counts exactly once, through lost responses and crashes. Waiting events of a row are sent together in one
// conditional write. An event that the service refuses becomes a dead letter of the journal. Do not restore a copy of
// a journal's folder after the original has delivered more events. The copy would use numbers that rows have already
// seen, and its events would not count. Use a new folder.
func NewAdder[T any](r *Rollup[T], repo *tsdb.Repository[T], w *tsdb.Writer) *Adder[T] {
	return &Adder[T]{rollup: r, repo: repo, writer: w}
}

// Add adds an event to the bucket of an entity at a time. An error is a *tsdb.WriteError. If it matches
// tsdb.ErrRejected, this call did not add the event. Reasons are a number above its measure's Max (tsdb.ErrInvalid),
// a time that is too late, too early or expired, a call of another mode, and for each mode those below.
//
// In mode Once, it sends one request with an idempotency token, by which Bigtable recognizes a repetition for 15
// minutes. If the response is lost, Add sends the same request and token again, within the timeout of writes and 10
// minutes. Before the first such repetition of a store, it tests with a row of its own whether the service recognizes
// tokens, in four requests or more; if it does not, Add does not repeat. The service also refuses an addition if the
// store's clock is wrong by 15 minutes. If the error matches tsdb.ErrUnknown, all responses were lost and the event
// may count: adding it again, which sends another token, may count it twice. A client without the interceptors would
// repeat the request itself, so Add sends nothing through such a client and fails.
//
// In mode ByStream, Add waits until the event is in the journal, so nil means that the event will count, exactly
// once. Each Add waits for a sync of the disk: in a loop, AddFunc and AddMany are many times faster. The journal
// rejects with tsdb.ErrClosed, an error of the writer's Admit, ctx's error, and tsdb.ErrInvalid for a writer
// without a journal. The error matches tsdb.ErrUnknown if ctx ends during the sync.
func (a *Adder[T]) Add(ctx context.Context, e tsdb.Entity, t time.Time, v T) error {
	if a.mode() == ByStream {
		return a.enqueue(ctx, e, t, v, nil)
	}
	return a.addOnce(ctx, e, t, v)
}

// AddMany adds events. It returns the outcome of each, in order. The error is nil if all of them count, else a
// *tsdb.BatchError. A rejected event does not stop the others.
//
// In mode Once, it sends as few requests as it can. Events of one row share a mutation and have the same outcome;
// each request has a row at most once. In mode ByStream, it waits until each event is in the journal or has failed.
// If ctx ends first, the outcome of the remaining events is tsdb.Unknown.
func (a *Adder[T]) AddMany(ctx context.Context, events []tsdb.Point[T]) ([]tsdb.Outcome, error) {
	if a.mode() == ByStream {
		return a.enqueueMany(ctx, events)
	}
	return a.addManyOnce(ctx, events)
}

// waysToAdd names the calls for rollups of each mode.
var waysToAdd = [...]string{
	Derived: "no call: it is computed from points", ByStream: "Add, AddFunc or AddMany", ByMessage: "AddMessage", Once: "Add or AddMany",
}

// mode returns the mode of the rollup.
func (a *Adder[T]) mode() Mode {
	if a == nil || a.rollup == nil {
		return Derived
	}
	return a.rollup.opts.Mode
}

// placed is an event with the row that it belongs to.
type placed struct {
	key   string
	path  string
	event rollupadd.Event
}

// begin starts an operation. If batched, it has n events.
func (a *Adder[T]) begin(ctx context.Context, n int, batched bool) (context.Context, *telemetry.Op) {
	if a == nil {
		return ctx, nil
	}
	return inside.Of(a.repo).Begin(ctx, telemetry.RollupAdd, n, batched)
}

// open returns the repository and the rollup, or the error of a call that is invalid or not allowed.
func (a *Adder[T]) open(ctx context.Context, mode Mode) (inside.Repository, *inside.Rollup, error) {
	if a == nil || a.rollup == nil || a.rollup.name == "" || a.rollup.readOnly {
		return inside.Repository{}, nil, invalid.New(tsdb.ErrInvalid, "rollup", "the zero value", "a rollup from Define")
	}
	in, err := inside.Of(a.repo).Internals()
	if err != nil {
		return inside.Repository{}, nil, err
	}
	if err := in.Allow(ctx); err != nil {
		return inside.Repository{}, nil, err
	}
	if is := a.rollup.opts.Mode; is != mode {
		if err := ctxerr.Of(ctx); err != nil {
			return inside.Repository{}, nil, err
		}
		return inside.Repository{}, nil, fmt.Errorf("%w: rollup %s has mode %s; want %s", rollupadd.ErrMode, a.rollup.name, is.text(), waysToAdd[is])
	}
	age, err := in.RollupAge(ctx)
	if err != nil {
		return inside.Repository{}, nil, err
	}
	for _, u := range in.Rollups {
		if u.Definition == any(a.rollup) {
			u = u.Within(age)
			return in, &u, nil
		}
	}
	return inside.Repository{}, nil, invalid.New(tsdb.ErrInvalid, "rollup", invalid.Quote(a.rollup.name), "a rollup in SchemaOptions.Rollups of the repository's schema")
}

// place checks an event against every limit and returns its row and bucket.
func (a *Adder[T]) place(in inside.Repository, u *inside.Rollup, e tsdb.Entity, t time.Time, v T) (placed, error) {
	path := inside.Of(e).Path()
	if err := in.Space.CheckPath(path); err != nil {
		return placed{}, err
	}
	now := in.Clock()
	if _, err := rowkey.Milliseconds.WrittenUnits(t); err != nil {
		return placed{}, err
	}
	if err := in.D.CheckTime(t, now); err != nil {
		return placed{}, err
	}
	start := a.rollup.grid.Start(t)
	bucket := start.UnixMilli()
	if err := rollupadd.CheckBucket(bucket, a.rollup.opts.Span.Milliseconds()); err != nil {
		return placed{}, invalid.New(tsdb.ErrInvalid, "time", stamp(t), "in a bucket that starts at or after 1970-01-01T00:00:00Z and far from the end of time")
	}
	if u.Bounded && start.Before(now.Add(-u.Age)) {
		return placed{}, invalid.New(tsdb.ErrExpired, "time", stamp(t), fmt.Sprintf("in a bucket that starts at most %v ago: the age of retention class %s, or the shorter one of the tenant's class", u.Age, u.Class.Name))
	}
	event := rollupadd.Event{Bucket: bucket, Numbers: make([]rollupadd.Number, len(a.rollup.measures))}
	for i := range a.rollup.measures {
		m := &a.rollup.measures[i]
		n, x, has, fits := m.number(v)
		if !has {
			continue
		}
		if !fits {
			limit := fmt.Sprintf("a magnitude of at most %v, the measure's Max", m.Max)
			if m.Kind == window.Counter {
				limit += ", and no negative number, because it is a counter"
			}
			return placed{}, invalid.New(tsdb.ErrInvalid, "measure "+m.Name, fmt.Sprint(x), limit)
		}
		event.Numbers[i] = rollupadd.Number{Value: n, Has: true}
	}
	if err := in.Take(path, 8*len(event.Numbers)); err != nil {
		return placed{}, err
	}
	key := string(u.Rows.AppendPoint(nil, path, a.rollup.added.Row(bucket)))
	return placed{key: key, path: path, event: event}, nil
}

func stamp(t time.Time) string { return instant.Text(t.UTC()) }

// outcome converts o to the public type.
func outcome(in inside.Repository, o bt.Outcome) tsdb.Outcome {
	out := tsdb.Outcome{State: tsdb.State(o.State), Attempts: o.Attempts, Err: o.Err}
	if o.Err != nil && o.Attempts > 0 && !errors.Is(o.Err, ErrTooManyMessages) {
		out.Err = in.Explain(o.Err)
	}
	return out
}

func rejected(err error) tsdb.Outcome { return tsdb.Outcome{State: tsdb.Rejected, Err: err} }

// errorOf returns an outcome as an error: nil if the event counts.
func errorOf(o tsdb.Outcome) error {
	if o.State == tsdb.Stored || o.State == tsdb.Journaled {
		return nil
	}
	return &tsdb.WriteError{Outcome: o}
}
