package httptenant

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tidemark-go/tidemark/tenant"
)

// statusOf returns the status of the response to a request rejected with err.
func statusOf(err error) int {
	switch {
	case errors.Is(err, tenant.ErrUnauthenticated):
		return http.StatusUnauthorized
	case errors.Is(err, tenant.ErrForbidden):
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}

// details are fixed texts, because the text of an error may name another tenant.
var details = map[int]string{
	http.StatusUnauthorized:        "The request has no credentials, or they are not valid.",
	http.StatusForbidden:           "The credentials give no access to this tenant, or name none or several.",
	http.StatusInternalServerError: "The server could not determine the tenant.",
}

// problem responds to a rejected request with problem details (RFC 9457) of type about:blank, and with the challenge
// for a 401 ("" is "Bearer"). It shows nothing of the error except the status.
func problem(w http.ResponseWriter, challenge string, err error) {
	if w == nil {
		return
	}
	status := statusOf(err)
	body, _ := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(status), status, details[status]}) // strings and an int always marshal
	h := w.Header()
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", cmp.Or(challenge, "Bearer"))
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}
