package rollupadd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/reach"
)

// ErrTooManyMessages means that the row remembers as many messages as it may. It accepts no new one until it may forget
// some.
var ErrTooManyMessages = errtype.New("rollup.ErrTooManyMessages", "rollup: too many messages have added to this row of late")

const (
	// parts is over how many parts a hash spreads the markers of a row, so that a write counts only one part of them.
	parts = 16
	// spread is the largest difference of markers' timestamps, in milliseconds.
	spread = 1_000_000
	// seenLen is the number of digits of the time at which a message was seen.
	seenLen = 19
)

// Message is one event with its own id.
type Message struct {
	Key   string
	ID    string
	Event Event
	// Earliest must never be ahead of the time, because it decides what the row forgets. Latest must never be behind
	// it: from then on the row remembers the message.
	Earliest, Latest func() time.Time
}

// AddMessage adds the event of a message, unless the row has seen the message within the remembered time. It retries
// within the timeout of writes: if an attempt's response was lost, the attempt either has left the message's marker or
// has added nothing.
func (s *Shape) AddMessage(ctx context.Context, t *bt.Table, m Message) (added bool, out bt.Outcome) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeouts().Write)
	defer cancel()
	a := remembering{Shape: s, Message: m, table: t, part: part(m.ID), nonce: fmt.Sprintf("%016x", rand.Uint64())}
	if err := ctxerr.Of(ctx); err != nil {
		return false, bt.Outcome{State: bt.Rejected, Err: err}
	}
	done := false
	err := t.Retry(ctx, func(ctx context.Context) (bool, error) {
		var err error
		added, err = a.try(ctx)
		done = err == nil && !a.again
		return done, err
	})
	if done {
		return added, bt.Outcome{State: bt.Stored, Attempts: a.attempts}
	}
	out = bt.Outcome{State: bt.Rejected, Attempts: a.attempts, Err: err}
	if a.maybeApplied {
		out.State = bt.Unknown
	}
	return false, out
}

func part(id string) string {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * prime
	}
	return "m:" + strconv.FormatUint(h%parts, 16) + ":"
}

type remembering struct {
	*Shape
	Message
	table        *bt.Table
	part         string // the prefix of the columns of its part
	nonce        string // distinguishes its marker from that of a copy of the message
	attempts     int
	maybeApplied bool
	again        bool // another attempt may succeed
}

// try makes one attempt, and reports whether the event was added. The call ends unless try sets again.
func (r *remembering) try(ctx context.Context) (added bool, err error) {
	now := max(0, r.Earliest().UnixMilli())  // before 1970 if nobody knows the time; a negative marker would be older than none
	mark := max(now, r.Latest().UnixMilli()) // else a message that comes while the clock is not trusted would be forgotten once it is
	b := r.Batch()
	b.Add(r.Event)
	m, _ := b.Mutation()
	row := r.Row(r.Event.Bucket)
	m.DeleteCellsInColumn(r.control(), r.part+r.ID)
	m.Set(r.control(), r.part+r.ID, r.timestamp(row, mark), fmt.Appendf(nil, "%0*d%s", seenLen, mark, r.nonce))
	matched, out := r.table.Conditional(ctx, r.Key, r.seen(now), nil, m)
	r.attempts += out.Attempts
	r.maybeApplied = r.maybeApplied || out.State == bt.Unknown
	r.again = false
	switch {
	case out.Err != nil:
		return false, out.Err
	case !matched:
		return true, nil
	}
	return r.look(ctx, now)
}

// timestamp returns a marker's timestamp. It differs from that of any earlier marker of the message that may be
// forgotten, so that removing the old marker does not remove the new one.
func (r *remembering) timestamp(row, seen int64) bigtable.Timestamp {
	minute := seen / time.Minute.Milliseconds()
	return r.end(row) + bigtable.Timestamp(minute%spread*1000)
}

func (r *remembering) oldest(now int64) int64 { return now - r.remember.Milliseconds() }

// seen passes a cell if the row remembers the message, or if the message's part of the row is full, even of markers
// that may be forgotten.
func (r *remembering) seen(now int64) bigtable.Filter {
	column := r.part + r.ID
	return bigtable.InterleaveFilters(
		bigtable.ChainFilters(
			bigtable.ColumnRangeFilter(r.control(), column, column+"\x00"),
			bigtable.ValueRangeFilter(fmt.Appendf(nil, "%0*d", seenLen, max(0, r.oldest(now))), nil),
		),
		bigtable.ChainFilters(r.all(), bigtable.CellsPerRowOffsetFilter(r.room()-1)),
	)
}

// all passes the markers of the message's part of the row.
func (r *remembering) all() bigtable.Filter {
	return bigtable.ColumnRangeFilter(r.control(), r.part, r.part[:len(r.part)-1]+";")
}

func (r *remembering) room() int { return max(1, r.messages/parts) }

// look finds out why the event was not added, and makes room if possible.
func (r *remembering) look(ctx context.Context, now int64) (added bool, err error) {
	row, err := r.table.RowAsJudged(ctx, r.Key, r.all())
	if err != nil {
		r.maybeApplied = true // a proxy may have sent the attempt twice, and the marker found may be its own
		return false, err
	}
	items := row.Family(r.control())
	old, forget := 0, bigtable.NewMutation()
	for _, item := range items {
		seen, nonce, ok := parseMarker(item.Value)
		_, qualifier, _ := strings.Cut(item.Column, ":")
		switch {
		case !ok || seen < r.oldest(now):
			forget.DeleteTimestampRange(r.control(), qualifier, item.Timestamp, item.Timestamp+1000)
			old++
		case qualifier == r.part+r.ID:
			if nonce != r.nonce {
				reach.Point(reach.KnownMessage)
			}
			return nonce == r.nonce, nil
		}
	}
	switch {
	case old > 0:
		if out := r.table.SingleCluster().Apply(ctx, r.Key, forget); out.State != bt.Stored {
			return false, out.Err
		}
	case len(items) >= r.room():
		return false, fmt.Errorf("%w: at most about %d within %v", ErrTooManyMessages, r.messages, r.remember)
	}
	r.again = true
	return false, nil
}

func parseMarker(value []byte) (seen int64, nonce string, ok bool) {
	if len(value) < seenLen {
		return 0, "", false
	}
	seen, err := strconv.ParseInt(string(value[:seenLen]), 10, 64)
	return seen, string(value[seenLen:]), err == nil
}
