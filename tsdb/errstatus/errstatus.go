// Package errstatus decides how a server responds to the errors of this module, over HTTP and over gRPC:
//
//	p, err := repo.Latest(r.Context(), device)
//	if err != nil {
//		slog.Error("latest", "error", err)
//		errstatus.HTTP(err).Write(w, r)
//		return
//	}
//
// Responses have fixed texts. An error itself may name tables, row keys, or fields of other tenants: log it, and do
// not send it. To tell a caller which argument was refused, read the *tsdb.InvalidError yourself, if you know that
// its value came from the caller.
//
// The package is below tsdb because it knows the errors of all packages. Packages tenant/httptenant and
// tenant/grpctenant import no store; they respond themselves to requests that they reject before these reach the store.
package errstatus

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// StatusClientClosedRequest is the HTTP status of a cancelled request, for example after the client has disconnected.
// No client sees it. It is for logs and metrics, where proxies use 499.
const StatusClientClosedRequest = 499

// Response is how an HTTP server responds to an error. The zero Response is written as 500.
type Response struct {
	// Status is the HTTP status; 200 for a nil error.
	Status int
	// Detail is a sentence that is safe to show to any caller. Empty for a nil error.
	Detail string
	// RetryAfter is the time after which the same request may succeed. Zero means unknown or never.
	RetryAfter time.Duration
}

// HTTP returns the response to an error:
//
//   - 400 for invalid arguments and cursors, and for points that are too late, too far ahead or expired
//   - 403 for a tenant other than the caller's, 401 for missing credentials
//   - 404 if the point does not exist
//   - 409 if another value is stored or something changed at the same time, 410 for erased data
//   - 413 for a payload over the tenant's limit
//   - 429 over any other limit of the tenant, with RetryAfter if waiting helps
//   - 499 if the request was cancelled; Write sends 503 if the client is still there
//   - 500 for mistakes of the program, damaged data and unknown errors
//   - 503 if the store cannot be reached, is closed, cannot write to its disk or removes the families of a class, and
//     if the outcome of a write is unknown
//   - 504 if a deadline or a timeout was exceeded
//
// An error of a bulk call contains several errors. The server's faults then have precedence over the caller's, so
// that a caller that does not retry statuses below 500 loses nothing. HTTP does no I/O and is safe for concurrent
// use.
func HTTP(err error) Response {
	return answerTo(err).response()
}

// Write writes the response as problem details (RFC 9457) of type about:blank. If RetryAfter is set, it adds a header
// Retry-After in whole seconds, rounded up. It writes a 499 as 503, unless the client of req has cancelled req:
// otherwise the server itself has cancelled, for example because it stops. If req is nil, Write assumes that the client
// is still there. A server that cancels requests itself must give another cause (context.WithCancelCause): without one,
// Write takes its cancellation for the client's.
func (r Response) Write(w http.ResponseWriter, req *http.Request) {
	if w == nil {
		return
	}
	if r.Status == 0 {
		r = unknown().response()
	}
	if r.Status == StatusClientClosedRequest && !left(req) {
		r = unavailable().response()
	}
	title := http.StatusText(r.Status)
	if r.Status == StatusClientClosedRequest {
		title = "Client Closed Request"
	}
	h := w.Header()
	if r.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((r.RetryAfter-1)/time.Second)+1, 10))
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(r.Status)
	_ = json.NewEncoder(w).Encode(struct { // the client may be gone
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
	}{"about:blank", title, r.Status, r.Detail})
}

// GRPC returns the error that a gRPC handler returns for an error of this module: a status with the code that
// corresponds to the HTTP status, with the same fixed text, and with a google.rpc.RetryInfo if HTTP has a RetryAfter.
// It is nil for a nil error. A handler must not return the store's own error: it may contain Bigtable's status, with
// the names of tables and rows.
func GRPC(err error) error {
	if err == nil {
		return nil
	}
	a := answerTo(err)
	s := status.New(a.grpc, a.detail)
	if a.retry > 0 {
		if with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(a.retry)}); err == nil {
			s = with
		}
	}
	return s.Err()
}

// answer is a response in both protocols.
type answer struct {
	http   int
	grpc   codes.Code
	detail string
	retry  time.Duration
}

func (a answer) response() Response {
	return Response{Status: a.http, Detail: a.detail, RetryAfter: a.retry}
}

// left reports whether the client of a request is gone. net/http then cancels the request's context, without another
// cause.
func left(req *http.Request) bool {
	return req != nil && context.Cause(req.Context()) == context.Canceled
}

func unknown() answer {
	return answer{http: http.StatusInternalServerError, grpc: codes.Internal, detail: "The server failed."}
}
