package rollupadd

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/reach"
)

// MaxStreams bounds the streams of a row. Each takes some 60 bytes, until the row's last bucket expires.
const MaxStreams = 1000

// ErrTooManyStreams means that the row has events of MaxStreams streams and accepts no new stream.
var ErrTooManyStreams = errtype.New("rollup.ErrTooManyStreams", "rollup: too many streams have added to this row")

const (
	streams      = "h:"
	afterStreams = "h;"
)

// Streamed is events of one row, from one stream, in the order of their numbers in it.
type Streamed struct {
	Key    string
	Stream string
	Seqs   []uint64
	Events []Event
	// MaybeApplied means that the response to an earlier attempt at some of them was lost.
	MaybeApplied bool
}

// AddStream adds events that are not in the row yet. No attempt can count an event twice: each checks, in the same
// mutation, up to where the row contains the stream. The caller must make one call at a time for a row and stream, and
// keep the stream's order. AddStream returns how many of the first events the row certainly contains; if that is all,
// the outcome is Stored. Rejected means that no other event is or will be added: their numbers may then be skipped.
func (s *Shape) AddStream(ctx context.Context, t *bt.Table, w Streamed) (counted int, out bt.Outcome) {
	a := adding{Shape: s, Streamed: w, table: t, maybeApplied: w.MaybeApplied}
	err := a.add(ctx)
	switch {
	case err == nil:
		return len(w.Seqs), bt.Outcome{State: bt.Stored, Attempts: a.attempts}
	case a.maybeApplied, !a.refused:
		return a.counted, bt.Outcome{State: bt.Unknown, Attempts: a.attempts, Err: err}
	}
	return a.counted, bt.Outcome{State: bt.Rejected, Attempts: a.attempts, Err: err}
}

type adding struct {
	*Shape
	Streamed
	table        *bt.Table
	counted      int
	attempts     int
	maybeApplied bool // an attempt may have been applied without a response
	refused      bool
	known        bool // the row has a mark of the stream
}

// maxRounds bounds the rounds of one call that count nothing.
const maxRounds = 5

func (a *adding) add(ctx context.Context) error {
	for idle := 0; a.counted < len(a.Seqs); {
		last, m := a.next()
		matched, out := a.table.Conditional(ctx, a.Key, a.covered(a.Seqs[a.counted]), nil, m)
		a.attempts += out.Attempts
		switch {
		case out.Attempts == 0: // no time is left
			return out.Err
		case out.State == bt.Unknown:
			a.maybeApplied = true
			return out.Err
		case out.Err != nil:
			return a.refuse(ctx, out.Err)
		case !matched:
			a.counted, idle = last, 0
			continue
		}
		reach.Point(reach.KnownEvents)
		before := a.counted
		if err := a.look(ctx); err != nil {
			return err
		}
		if a.counted > before {
			idle = 0
		} else if idle++; idle == maxRounds {
			return bt.ErrFaster
		}
	}
	return nil
}

// next returns the mutation for the next events, as many as fit into one request, and the number of the last one.
func (a *adding) next() (last int, m *bigtable.Mutation) {
	b := a.Batch()
	for last = a.counted; last < len(a.Seqs) && b.Add(a.Events[last]); last++ {
	}
	m, _ = b.Mutation()
	m.Set(a.control(), streams+a.Stream, a.end(a.Row(a.Events[0].Bucket)), mark(a.Seqs[last-1]))
	return last, m
}

func mark(seq uint64) []byte { return fmt.Appendf(nil, "%020d", seq) }

// covered passes a cell if the row contains the stream up to a number or further. While the row is not known to contain
// the stream, it also passes one if the row has as many streams as it may.
func (a *adding) covered(seq uint64) bigtable.Filter {
	column := streams + a.Stream
	own := bigtable.ChainFilters(bigtable.ColumnRangeFilter(a.control(), column, column+"\x00"), bigtable.ValueRangeFilter(mark(seq), nil))
	if a.known {
		return own
	}
	full := bigtable.ChainFilters(bigtable.ColumnRangeFilter(a.control(), streams, afterStreams), bigtable.CellsPerRowOffsetFilter(MaxStreams-1))
	return bigtable.InterleaveFilters(own, full)
}

// look finds out up to where the row contains the stream.
func (a *adding) look(ctx context.Context) error {
	row, err := a.table.RowAsJudged(ctx, a.Key, bigtable.ColumnRangeFilter(a.control(), streams, afterStreams))
	if err != nil {
		return err
	}
	own, items := a.control()+":"+streams+a.Stream, row.Family(a.control())
	for _, item := range items {
		if item.Column != own {
			continue
		}
		high, err := strconv.ParseUint(string(item.Value), 10, 64)
		if err != nil {
			a.refused = true
			return fmt.Errorf("rollup: the mark of stream %s is %q: %w", a.Stream, item.Value, err)
		}
		a.known = true
		for a.counted < len(a.Seqs) && a.Seqs[a.counted] <= high {
			a.counted++
		}
		return nil
	}
	if len(items) >= MaxStreams {
		a.refused = true
		return fmt.Errorf("%w: at most %d", ErrTooManyStreams, MaxStreams)
	}
	return nil
}

// refuse handles a refusal by the service. Events that the row contains anyway were added before, by an earlier writer
// of the stream.
func (a *adding) refuse(ctx context.Context, cause error) error {
	if a.maybeApplied {
		return cause
	}
	if err := a.look(ctx); err != nil {
		if a.refused {
			return err
		}
		return errors.Join(cause, err)
	}
	if a.counted == len(a.Seqs) {
		return nil
	}
	a.refused = true
	return cause
}
