package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/errstatus"
)

// problem is what a page shows for a request that failed: a body of RFC 9457 of the type about:blank.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Instance is the ID of the error in the log, if it was logged.
	Instance string `json:"instance,omitempty"`
	wait     time.Duration
}

// Error lets a handler return a problem.
func (p problem) Error() string { return p.Detail }

var (
	errNothing   = problem{Status: http.StatusNotFound, Detail: "There is nothing at this address."}
	errNoDataset = problem{Status: http.StatusNotFound, Detail: "There is no such dataset, or it has no points of this tenant."}
	errStops     = problem{Status: http.StatusServiceUnavailable, Detail: "The console stops."}
	errBusy      = problem{Status: http.StatusServiceUnavailable, Detail: "Too many requests at once. Try again in a second.", wait: time.Second}
)

const notLoggedIn = "You are not logged in, or the session is over."

// refused is the problem of an argument.
func refused(field, value, limit string) problem {
	return problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s is %s; want %s.", field, value, limit)}
}

// maxShown is the number of bytes of a refused value that a response repeats.
const maxShown = 64

func shown(s string) string {
	if s == "" {
		return "empty"
	}
	if len(s) > maxShown {
		return fmt.Sprintf("%q… (%d bytes)", s[:maxShown], len(s))
	}
	return strconv.Quote(s)
}

// problemOf returns what a user may see of an error. The store's errors name tables, rows and addresses, so unknown
// ones are hidden.
func problemOf(err error) problem {
	if p, ok := errors.AsType[problem](err); ok {
		return p
	}
	if over, ok := errors.AsType[*limit.Error](err); ok {
		return problem{
			Status: http.StatusTooManyRequests, wait: over.RetryAfter,
			Detail: fmt.Sprintf("The tenant's limit %s is at most %d.", over.ID, over.Limit),
		}
	}
	switch {
	case errors.Is(err, tsdb.ErrTooManyFollowers):
		return errBusy
	case errors.Is(err, errSessionOver):
		return problem{Status: http.StatusUnauthorized, Detail: notLoggedIn}
	case errors.Is(err, errStopping):
		return errStops
	}
	if invalid, ok := errors.AsType[*tsdb.InvalidError](err); ok { // all arguments come from the client
		return refused(invalid.Field, invalid.Value, invalid.Limit)
	}
	got := errstatus.HTTP(err)
	p := problem{Status: got.Status, Detail: got.Detail, wait: got.RetryAfter}
	switch {
	case errors.Is(err, tenant.ErrNoCredentials), errors.Is(err, tenant.ErrUnauthenticated):
		p.Detail = notLoggedIn
	case errors.Is(err, tenant.ErrForbidden):
		p.Detail = "This session may not see this tenant."
	case got.Status == errstatus.StatusClientClosedRequest: // a client that has gone gets no response, so the server cancelled
		return errStops
	case got.Status == http.StatusGatewayTimeout:
		p.Detail = "Reading took too long. Choose a shorter time or fewer entities."
	}
	return p
}

// fail responds with the problem of an error, and logs the error if it is the server's.
func (s *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := s.note(r, err)
	if p == nil {
		return
	}
	switch p.Status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		edge.RetryAfter(w, p.wait)
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may have gone
}

// note returns the problem of an error, and logs an error of the server. It returns nil if the client has gone.
func (s *Console) note(r *http.Request, err error) *problem {
	if errors.Is(r.Context().Err(), context.Canceled) && context.Cause(r.Context()) == context.Canceled { //nolint:errorlint // the client's own end
		return nil
	}
	p := problemOf(err)
	stops, busy := p == errStops, p == errBusy // are no faults
	p.Title = http.StatusText(p.Status)
	if _, expected := errors.AsType[problem](err); p.Status >= http.StatusInternalServerError && !expected && !stops && !busy {
		p.Instance = "/occurrences/" + rand.Text()
		s.Log.Error("request failed", "instance", p.Instance, "path", r.URL.Path, "error", err)
	}
	return &p
}
