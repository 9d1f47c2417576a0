package errstatus

import (
	"context"
	"errors"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/diskerr"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// retrySoon is when to repeat a request that the store could not answer.
const retrySoon = time.Second

// rule is the response to errors that match one of some sentinels.
type rule struct {
	errs []error
	answer
}

func (r rule) matches(err error) bool {
	for _, target := range r.errs {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// faults are errors of the server. They are checked first. Errors without a rule are faults, too.
var faults = []rule{
	{
		[]error{
			tsdb.ErrForeignRow, tsdb.ErrNoTenant, tenancy.ErrSchemaConflict, tsdb.ErrNoTable, tsdb.ErrNoView, tenancy.ErrNoAdmin,
			tsdb.ErrUnreadableEntry,
			ensure.ErrNoConditionalAggregates, tsdb.ErrDamaged,
			codec.ErrCorrupt, codec.ErrUnknownTag, codecerr.ErrReadOnly, rollupadd.ErrMode, invalid.ErrOrder, errtype.ErrRemains,
			clock.ErrAhead, codecerr.ErrInvalid,
		},
		unknown(),
	},
	{
		// Before cancellation: closing a store or a writer cancels calls in progress, and the caller is still there.
		[]error{tsdb.ErrClosed, tsdb.ErrRemoving, tsdb.ErrLocked, diskerr.ErrStorage},
		unavailable(),
	},
	{
		[]error{context.Canceled},
		answer{http: StatusClientClosedRequest, grpc: codes.Canceled, detail: "The request was cancelled."},
	},
	{
		[]error{context.DeadlineExceeded, buffer.ErrTimeout},
		answer{http: http.StatusGatewayTimeout, grpc: codes.DeadlineExceeded, detail: "The time for the request was over."},
	},
	{
		[]error{
			tsdb.ErrUnknown, tsdb.ErrUndelivered, tsdb.ErrBufferFull,
			rollup.ErrTooManyMessages, rollupadd.ErrTooManyStreams, points.ErrTooManyFollowers,
		},
		unavailable(),
	},
	{[]error{bt.ErrUnguarded}, unknown()},
}

func unavailable() answer {
	return answer{
		http: http.StatusServiceUnavailable, grpc: codes.Unavailable, retry: retrySoon,
		detail: "The store is not available now. The same request may be sent again.",
	}
}

// refusals are errors of the caller's request.
var refusals = []rule{
	{
		[]error{tenant.ErrUnauthenticated},
		answer{http: http.StatusUnauthorized, grpc: codes.Unauthenticated, detail: "The request has no credentials, or they are not valid."},
	},
	{
		[]error{tenant.ErrForbidden, tsdb.ErrTenantMismatch, retention.ErrNotAllowed},
		answer{http: http.StatusForbidden, grpc: codes.PermissionDenied, detail: "The request is not allowed."},
	},
	{
		[]error{tsdb.ErrErased},
		answer{http: http.StatusGone, grpc: codes.FailedPrecondition, detail: "The data is deleted."},
	},
	{
		[]error{tenants.ErrConflict, errtype.ErrErasing, tenants.ErrTakenOver, retention.ErrStale},
		answer{http: http.StatusConflict, grpc: codes.Aborted, detail: "Something else has changed the same thing meanwhile."},
	},
	{
		[]error{points.ErrNoMerge, tenants.ErrImpossible, errtype.ErrPlan, rollupadd.ErrAdded},
		answer{http: http.StatusConflict, grpc: codes.FailedPrecondition, detail: "The stored data does not allow the change."},
	},
	{
		[]error{tsdb.ErrExists},
		answer{http: http.StatusConflict, grpc: codes.AlreadyExists, detail: "It is stored already."},
	},
	{
		[]error{tsdb.ErrCursor},
		answer{http: http.StatusBadRequest, grpc: codes.InvalidArgument, detail: "The cursor does not belong to this query. Ask for the first page again."},
	},
	{
		[]error{tsdb.ErrLate, tsdb.ErrExpired},
		answer{http: http.StatusBadRequest, grpc: codes.OutOfRange, detail: "The point is too old."},
	},
	{
		[]error{tsdb.ErrTooFarAhead},
		answer{http: http.StatusBadRequest, grpc: codes.OutOfRange, detail: "The point is too far in the future."},
	},
	{
		[]error{window.ErrTooManyFilled},
		answer{http: http.StatusBadRequest, grpc: codes.InvalidArgument, detail: "The answer would have too many buckets."},
	},
	{
		[]error{transfer.ErrDamaged, transfer.ErrVersion, transfer.ErrTenant, transfer.ErrKey, errtype.ErrCheckpoint},
		answer{http: http.StatusBadRequest, grpc: codes.InvalidArgument, detail: "The file cannot be imported."},
	},
	{
		[]error{tsdb.ErrInvalid, tenant.ErrInvalid, codec.ErrEncode, invalid.ErrPersonal},
		answer{http: http.StatusBadRequest, grpc: codes.InvalidArgument, detail: "An argument is not valid."},
	},
	{
		// After tsdb.ErrInvalid: a call that takes limits or a policy as an argument returns both.
		[]error{invalid.ErrLimits, invalid.ErrPolicy, invalid.ErrVersions},
		unknown(),
	},
	{
		[]error{tsdb.ErrNotFound},
		answer{http: http.StatusNotFound, grpc: codes.NotFound, detail: "There is no such point."},
	},
}

// answerTo returns the response to an error.
func answerTo(err error) answer {
	if err == nil {
		return answer{http: http.StatusOK, grpc: codes.OK}
	}
	if batch, ok := errors.AsType[*tsdb.BatchError](err); ok && batch != nil && len(batch.Failed) > 0 {
		return worstOf(batch)
	}
	for _, r := range faults {
		if r.matches(err) {
			return r.answer
		}
	}
	if of, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err); ok {
		return ofStore(of.GRPCStatus().Code())
	}
	if over, ok := errors.AsType[*limit.Error](err); ok {
		return overLimit(over)
	}
	if errors.Is(err, limit.ErrExceeded) {
		return overLimit(&limit.Error{})
	}
	for _, r := range refusals {
		if r.matches(err) {
			return r.answer
		}
	}
	if errors.Is(err, tsdb.ErrRejected) {
		return unavailable()
	}
	return unknown()
}

// worstOf returns the response to a bulk call with several errors, so that a caller that follows it loses nothing. A
// fault of the server has precedence, then errors that are worth a retry, the longest wait first, then the first
// error.
func worstOf(batch *tsdb.BatchError) answer {
	rank := func(a answer) (int, time.Duration) {
		switch {
		case a.http >= http.StatusInternalServerError:
			return 3, a.retry
		case a.http == StatusClientClosedRequest:
			return 2, 0
		case a.http == http.StatusTooManyRequests:
			return 1, a.retry
		}
		return 0, 0
	}
	var worst answer
	for i, f := range batch.Failed {
		a := answerTo(&tsdb.WriteError{Outcome: f.Outcome})
		r, wait := rank(a)
		if w, longest := rank(worst); i == 0 || r > w || r == w && wait > longest {
			worst = a
		}
	}
	return worst
}

// ofStore returns the response for a status code of Bigtable. If the program's request was invalid or not permitted,
// that is not the fault of the program's caller.
func ofStore(c codes.Code) answer {
	switch c {
	case codes.DeadlineExceeded:
		return answer{http: http.StatusGatewayTimeout, grpc: codes.DeadlineExceeded, detail: "The time for the request was over."}
	case codes.Unavailable, codes.Aborted, codes.ResourceExhausted, codes.Canceled, codes.Internal, codes.Unknown:
		return unavailable()
	}
	return unknown()
}

// overLimit returns the response to a call over a limit of its tenant. The names of limits are documented, and safe
// to show.
func overLimit(over *limit.Error) answer {
	detail := "The tenant is over one of its limits."
	if over.ID != "" {
		detail = "The tenant is over its limit " + string(over.ID) + "."
	}
	switch over.ID {
	case limit.RangeLength:
		return answer{http: http.StatusBadRequest, grpc: codes.InvalidArgument, detail: detail}
	case limit.PointBytes:
		return answer{http: http.StatusRequestEntityTooLarge, grpc: codes.InvalidArgument, detail: detail}
	}
	return answer{http: http.StatusTooManyRequests, grpc: codes.ResourceExhausted, detail: detail, retry: over.RetryAfter}
}
