package httptenant

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tidemark-go/tidemark/tenant"
)

// StatusOf returns the status by which a request is answered that was turned away with err: 401 for
// tenant.ErrUnauthenticated, 403 for tenant.ErrForbidden, and 500 for what is not the caller's fault.
func StatusOf(err error) int {
	switch {
	case errors.Is(err, tenant.ErrUnauthenticated):
		return http.StatusUnauthorized
	case errors.Is(err, tenant.ErrForbidden):
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}

// details are fixed texts: what an error says may be another tenant's name.
var details = map[int]string{
	http.StatusUnauthorized:        "The request has no credentials, or they are not good.",
	http.StatusForbidden:           "The credentials do not give access as one tenant.",
	http.StatusInternalServerError: "It could not be found out whose the request is.",
}

// Problem answers a request that was turned away with problem details by RFC 9457, of type about:blank, and with 401 the
// challenge ("" is "Bearer"). It shows nothing of the error but its status.
func Problem(w http.ResponseWriter, challenge string, err error) {
	if w == nil {
		return
	}
	status := StatusOf(err)
	body, _ := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(status), status, details[status]}) // of strings and an int, so it cannot fail
	h := w.Header()
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", cmp.Or(challenge, "Bearer"))
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // who cannot be reached cannot be told
}
