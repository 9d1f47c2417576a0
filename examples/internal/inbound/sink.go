package inbound

import (
	"context"
	"errors"
	"net/http"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

// Sink stores points through a writer. The Err of its outcomes is
//
//   - nil if the point is stored, in the writer's journal, or unchanged: acknowledge its records;
//   - an *Error if it can never be stored as it is: report its records, or move them to a dead-letter queue;
//   - any other error if it may be stored or not: send its records again, which changes nothing if it is.
type Sink struct {
	Store  *tsdb.Store
	Writer *tsdb.Writer
}

// Enqueue gives a point to the writer, and calls done exactly once with its outcome. tsdb.Sink.EnqueueFunc describes
// what done may do. Enqueue waits while the writer's buffer is full, until ctx ends.
func (s Sink) Enqueue(ctx context.Context, id tenant.ID, p Point, done func(tsdb.Outcome)) {
	_ = s.via(id, p.Dataset, p.change).EnqueueFunc(ctx, p.Entity, p.Time, p.Record, func(out tsdb.Outcome) {
		done(classify(out))
	})
}

// via returns the sink of a dataset. A change is that of its route.
func (s Sink) via(id tenant.ID, d *Dataset, change *tsdb.OnChange[codec.Record]) *tsdb.Sink[codec.Record] {
	sink := d.schema.For(s.Store, id).Via(s.Writer)
	if change != nil {
		sink = sink.OnChange(*change)
	}
	return sink
}

// IsFinal reports whether sending the same record again changes nothing: err is nil or an *Error.
func IsFinal(err error) bool {
	_, refused := errors.AsType[*Error](err)
	return err == nil || refused
}

// Graver returns the error of two points that decides what becomes of their message. A point that may still be stored
// counts more than one that is refused: the message is sent again.
func Graver(a, b error) error {
	if b != nil && IsFinal(a) {
		return b
	}
	return a
}

// The reasons why the store refuses points.
const (
	ReasonSeries = "another series has its key and time"
	ReasonTime   = "its time is not accepted"
	ReasonValue  = "its values cannot be stored"
	ReasonLimit  = "it is over a limit of the tenant"
)

// classify makes the error of an outcome an *Error if the point would be refused again.
func classify(out tsdb.Outcome) tsdb.Outcome {
	if out.Err != nil && out.State == tsdb.Rejected && refusedAgain(out.Err) {
		out.Err = &Error{reason(out.Err), out.Err}
	}
	return out
}

// refusedAgain reports whether a refused point would be refused again: the fault is the client's, and if it is over a
// limit, waiting does not help, as with the number of entities.
func refusedAgain(err error) bool {
	r := errstatus.HTTP(err)
	switch r.Status {
	case http.StatusTooManyRequests:
		return r.RetryAfter == 0
	case errstatus.StatusClientClosedRequest:
		return false
	}
	return r.Status < http.StatusInternalServerError
}

func reason(err error) string {
	switch {
	case errors.Is(err, limit.ErrExceeded):
		return ReasonLimit
	case errors.Is(err, tsdb.ErrExists):
		return ReasonSeries
	case errors.Is(err, tsdb.ErrExpired), errors.Is(err, tsdb.ErrLate), errors.Is(err, tsdb.ErrTooFarAhead):
		return ReasonTime
	}
	if ie, ok := errors.AsType[*tsdb.InvalidError](err); ok && ie.Field == "time" {
		return ReasonTime
	}
	return ReasonValue
}
