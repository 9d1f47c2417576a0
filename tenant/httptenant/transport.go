package httptenant

import (
	"fmt"
	"net/http"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Transport sends the tenant of a request's context to the next service, in a header that tenant.FromHeader reads
// there. Use it between services that trust each other. It is an http.RoundTripper, safe for concurrent use. The zero
// Transport fails every request.
type Transport struct {
	// Header is the header's name, such as "X-Tenant". It is required.
	Header string
	// Base sends the requests. Nil is http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip sends the request with the tenant of its context in the header, instead of the header's values. It does
// not change the caller's request. It does not send a request without a tenant; the error matches
// tenant.ErrNoCredentials.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t == nil || r == nil || r.URL == nil {
		return nil, fmt.Errorf("%w: no transport, request or URL", invalid.ErrHTTP)
	}
	id, ok := tenant.FromContext(r.Context())
	if !ok || id.IsZero() || t.Header == "" {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close it, also on errors
		}
		if t.Header == "" {
			return nil, fmt.Errorf("%w: a Transport without a Header", invalid.ErrHTTP)
		}
		return nil, fmt.Errorf("httptenant: %w in the context of a request to %s", tenant.ErrNoCredentials, r.URL.Host)
	}
	r = r.Clone(r.Context())
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(t.Header, id.String())
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(r)
}
