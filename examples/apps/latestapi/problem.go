package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// problemTypes is the start of the URIs of problems, which clients compare. README.md explains each problem.
const problemTypes = "https://github.com/tidemark-go/tidemark/tree/main/examples/apps/latestapi#"

// problem is a body of RFC 9457. It describes what the client can correct. For all else it has an ID, and the log has
// the error under that ID.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Instance is the ID of the error in the log, if it was logged.
	Instance string `json:"instance,omitempty"`
	// Field, Value and Limit say what was refused: the name by which the client knows it, and what would have been
	// accepted.
	Field string        `json:"field,omitempty"`
	Value string        `json:"value,omitempty"`
	Limit string        `json:"limit,omitempty"`
	wait  time.Duration // until the same request may succeed; 0 if unknown
	// Time is the time of the unreadable point.
	Time instant.Time `json:"time,omitzero"`
}

// kind is a kind of problem.
type kind struct {
	name, title string
	status      int
}

var (
	invalidInput     = kind{"invalid-input", "A parameter or a part of the body was refused", http.StatusBadRequest}
	badCursor        = kind{"bad-cursor", "The cursor is not one of this query", http.StatusBadRequest}
	tooManyBuckets   = kind{"too-many-buckets", "The windows are too many for one answer", http.StatusBadRequest}
	unauthorized     = kind{"unauthorized", "The bearer token is missing or not known", http.StatusUnauthorized}
	forbidden        = kind{"forbidden", "The request is not allowed", http.StatusForbidden}
	noPoint          = kind{"no-point", "There is no point", http.StatusNotFound}
	noDataset        = kind{"no-dataset", "There is no such dataset", http.StatusNotFound}
	noResource       = kind{"no-resource", "There is nothing at this address", http.StatusNotFound}
	methodNotAllowed = kind{"method-not-allowed", "The address does not take this method", http.StatusMethodNotAllowed}
	notAcceptable    = kind{"not-acceptable", "None of the media types that are accepted is to be had", http.StatusNotAcceptable}
	conflict         = kind{"conflict", "Something else has changed the same thing meanwhile", http.StatusConflict}
	deleted          = kind{"deleted", "The data is deleted", http.StatusGone}
	bodyTooLarge     = kind{"body-too-large", "The body is too large", http.StatusRequestEntityTooLarge}
	bodyType         = kind{"body-type", "The body is not JSON", http.StatusUnsupportedMediaType}
	internal         = kind{"internal", "This server made a mistake", http.StatusInternalServerError}
	unreadablePoint  = kind{"unreadable-point", "The point is stored, and cannot be read", http.StatusInternalServerError}
	overLimit        = kind{"over-limit", "The tenant is over one of its limits", http.StatusTooManyRequests}
	busy             = kind{"busy", "Too many requests at once", http.StatusServiceUnavailable}
	unavailable      = kind{"unavailable", "The store could not answer", http.StatusServiceUnavailable}
	timedOut         = kind{"timeout", "The time for the answer was over", http.StatusGatewayTimeout}
)

func (k kind) problem() *problem {
	return &problem{Type: problemTypes + k.name, Title: k.title, Status: k.status}
}

// Error lets a handler return a problem as its error.
func (p *problem) Error() string { return p.Title + ": " + p.Detail }

// with returns the problem with a detail.
func (p *problem) with(detail string) *problem {
	p.Detail = detail
	return p
}

// refused is the problem of an argument.
func refused(field, value, limit string) *problem {
	p := invalidInput.problem().with(field + " is " + value + "; want " + limit)
	p.Field, p.Value, p.Limit = field, value, limit
	return p
}

// problemOf returns the problem that the client sees for an error. It hides the text of unknown errors, because the
// store's errors name tables, rows and addresses.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if bad, ok := errors.AsType[*tsdb.PointError](err); ok {
		p := unreadablePoint.problem()
		p.Time.Time = bad.Time
		return p
	}
	if over, ok := errors.AsType[*limit.Error](err); ok {
		return overLimitOf(over)
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		p := bodyTooLarge.problem().with(fmt.Sprintf("it has more than %d bytes, which is the limit of -max-body", large.Limit))
		p.Field, p.Limit = "body", fmt.Sprintf("at most %d bytes", large.Limit)
		return p
	}
	if errors.Is(err, edge.ErrNoRoom) || errors.Is(err, tsdb.ErrTooManyFollowers) {
		return busy.problem()
	}
	switch errstatus.HTTP(err).Status {
	case http.StatusBadRequest:
		return badRequest(err)
	case http.StatusUnauthorized:
		return unauthorized.problem()
	case http.StatusForbidden:
		return forbidden.problem()
	case http.StatusConflict:
		return conflict.problem()
	case http.StatusGone:
		return deleted.problem()
	case http.StatusNotFound:
		return noPoint.problem()
	case http.StatusServiceUnavailable, errstatus.StatusClientClosedRequest: // a client that has gone gets no response, so the server cancelled
		return unavailable.problem()
	case http.StatusGatewayTimeout:
		return timedOut.problem()
	}
	return internal.problem()
}

// badRequest is the problem of a request that cannot be answered as it is. All arguments of this program's reads come
// from the client, so that it may see which one was refused.
func badRequest(err error) *problem {
	switch e, ok := errors.AsType[*tsdb.InvalidError](err); {
	case errors.Is(err, tsdb.ErrCursor):
		return badCursor.problem().with("ask for the first page again, without a cursor")
	case errors.Is(err, window.ErrTooManyFilled):
		return tooManyBuckets.problem().with("take a shorter interval, or longer windows")
	case ok:
		return refused(e.Field, e.Value, e.Limit)
	}
	return invalidInput.problem()
}

// overLimitOf is the problem of a limit. One that waiting does not help with, as with an interval that is too long, is
// a refused argument.
func overLimitOf(over *limit.Error) *problem {
	if over.ID == limit.RangeLength {
		return refused(string(over.ID), time.Duration(over.Used).String(), "at most "+time.Duration(over.Limit).String())
	}
	p := overLimit.problem().with(fmt.Sprintf("%s is at most %d", over.ID, over.Limit))
	p.Field, p.wait = string(over.ID), over.RetryAfter
	return p
}

// fail responds with the problem of an error, and logs the error if the client cannot see it.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := s.note(r, err)
	if p == nil {
		return
	}
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		edge.RetryAfter(w, p.wait)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have gone
}

// note returns the problem of an error, and logs an error of the server. It returns nil if the client has gone.
func (s *server) note(r *http.Request, err error) *problem {
	if errors.Is(r.Context().Err(), context.Canceled) {
		return nil
	}
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && p.Type != problemTypes+busy.name && !hurried(r, p) {
		p.Instance = "/occurrences/" + rand.Text()
		s.log.Error("request failed", "instance", p.Instance, "method", r.Method, "path", r.URL.Path, "error", err)
	}
	return p
}

// hurried reports whether the response exceeded a timeout that the client chose, which is not the server's fault. That
// of a stream is not one of its reads.
func hurried(r *http.Request, p *problem) bool {
	return r.Pattern != http.MethodGet+" "+livePath && p.Type == problemTypes+timedOut.name && r.URL.Query().Has("timeout")
}
