package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

// apiError is the error of a query: its status, and the errorType that clients of Prometheus know.
type apiError struct {
	status int
	kind   string
	text   string
	wait   time.Duration
	cause  error // for the log; nil if the client sees it all
}

func (e *apiError) Error() string { return e.text }
func (e *apiError) Unwrap() error { return e.cause }

var errBusy = &apiError{status: http.StatusTooManyRequests, kind: "too_many_requests", text: "too many requests of this tenant at once", wait: time.Second}

func badData(err error) *apiError {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &apiError{status: http.StatusRequestEntityTooLarge, kind: "bad_data", text: "the form is too large"}
	}
	return &apiError{status: http.StatusBadRequest, kind: "bad_data", text: err.Error()}
}

// apiErrorOf returns how a query's error is shown. Errors of PromQL are about what the client sent. Those of the store
// name tables and rows, so that their text is hidden.
func apiErrorOf(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	execution := func() *apiError {
		return &apiError{status: http.StatusUnprocessableEntity, kind: "execution", text: err.Error()}
	}
	if _, ok := errors.AsType[promql.ErrTooManySamples](err); ok {
		return execution()
	}
	if _, ok := errors.AsType[tooManySeriesError](err); ok {
		return execution()
	}
	timeout := &apiError{status: http.StatusServiceUnavailable, kind: "timeout", text: "the time for the request was over"}
	if _, ok := errors.AsType[promql.ErrQueryTimeout](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return timeout
	}
	if _, ok := errors.AsType[promql.ErrQueryCanceled](err); ok || errors.Is(err, context.Canceled) {
		return &apiError{status: errstatus.StatusClientClosedRequest, kind: "canceled", text: "the request was cancelled"}
	}
	if over, ok := errors.AsType[*limit.Error](err); ok {
		e := &apiError{status: http.StatusTooManyRequests, kind: "too_many_requests", text: "the tenant is over its limit " + string(over.ID), wait: over.RetryAfter}
		if over.ID == limit.RangeLength {
			e.status, e.kind = http.StatusUnprocessableEntity, "execution"
		}
		return e
	}
	if !errors.Is(err, errStored) {
		return execution()
	}
	response := errstatus.HTTP(err)
	e := &apiError{status: response.Status, kind: "internal", text: response.Detail, wait: response.RetryAfter, cause: err}
	switch {
	case e.status == http.StatusServiceUnavailable:
		e.kind = "unavailable"
	case e.status == http.StatusGatewayTimeout:
		return timeout
	case e.status < http.StatusInternalServerError:
		e.kind = "execution"
	}
	return e
}

// fail responds with an error, and logs it if the client does not see it all.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(r.Context().Err(), context.Canceled) {
		return // the client has gone
	}
	s.forgetErased(r, err)
	e := apiErrorOf(err)
	if e.status == errstatus.StatusClientClosedRequest { // the client is still there, so this server cancelled
		e = &apiError{status: http.StatusServiceUnavailable, kind: "unavailable", text: "the server stops"}
	}
	if e.status >= http.StatusInternalServerError && e.cause != nil {
		s.log.Error("query failed", "path", r.URL.Path, "error", e.cause)
	}
	if e.status == http.StatusTooManyRequests || e.kind == "unavailable" {
		edge.RetryAfter(w, e.wait)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(struct {
		Status string `json:"status"`
		Kind   string `json:"errorType"`
		Text   string `json:"error"`
	}{"error", e.kind, e.text})
}

// forgetErased drops what is cached of the request's tenant if the error says that the tenant is erased.
func (s *server) forgetErased(r *http.Request, err error) {
	if errors.Is(err, tsdb.ErrErased) {
		id, _ := tenant.FromContext(r.Context())
		s.forget(id)
	}
}
