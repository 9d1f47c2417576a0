// Package httptenant determines the tenant of each request to an HTTP server, and rejects requests without one.
//
//	edge, err := httptenant.New(tenant.FromHeader("X-Tenant"), httptenant.Options{Public: httptenant.Paths("/healthz")})
//	http.ListenAndServe(addr, edge(mux))
//
// In the handlers, tenant.FromContext returns the tenant from a request's context. Schema.FromContext of package tsdb
// and every call of a repository use it, too. A store that was opened with RequireTenant refuses calls whose context
// has no tenant.
package httptenant

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Options configure the middleware. The zero value has no public requests and the usual responses.
type Options struct {
	// Public reports which requests pass without a tenant, such as health checks. Their credentials are ignored, and
	// their context has no tenant. Nil is none. Paths makes a function that a modified path cannot bypass.
	Public func(*http.Request) bool
	// Challenge is the header WWW-Authenticate of a 401 response, which says how to authenticate. Empty is "Bearer".
	Challenge string
	// Answer writes the response to a rejected request in the server's own format: with 401 and a header
	// WWW-Authenticate for tenant.ErrUnauthenticated, 403 for tenant.ErrForbidden, and 500 for errors that are not the
	// caller's fault. Log err, but do not show it to the caller: it may name tenants. Nil writes problem details (RFC
	// 9457) of type about:blank, which show nothing of the error except the status.
	Answer func(w http.ResponseWriter, r *http.Request, err error)
}

// New returns a middleware that calls the resolver and puts the tenant into the request's context. It rejects a
// request without valid credentials with 401. It rejects credentials that name no tenant, or another tenant than the
// context already carries, with 403. If the resolver cannot determine the tenant, the status is 500. In all these
// cases the handler is not called. New fails for a nil resolver and for a
// Challenge that is not printable ASCII.
//
// The middleware is safe for concurrent use and does not read the body. In addition to the resolver's cost, a request
// costs about a microsecond and half a kilobyte.
func New(resolver tenant.Resolver, opts Options) (func(http.Handler) http.Handler, error) {
	if resolver == nil {
		return nil, invalid.New(invalid.ErrHTTP, "resolver", "nil", "a tenant.Resolver")
	}
	if strings.ContainsFunc(opts.Challenge, func(c rune) bool { return c < ' ' || c > '~' }) {
		return nil, invalid.New(invalid.ErrHTTP, "Challenge", invalid.Quote(opts.Challenge), "printable ASCII")
	}
	answer := opts.Answer
	if answer == nil {
		answer = func(w http.ResponseWriter, _ *http.Request, err error) { problem(w, opts.Challenge, err) }
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			next = http.NotFoundHandler()
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if opts.Public != nil && opts.Public(r) {
				next.ServeHTTP(w, r)
				return
			}
			ctx, err := resolve(r, resolver)
			if err != nil {
				answer(w, r, err)
				return
			}
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}, nil
}

// resolve returns the context of a request with its tenant.
func resolve(r *http.Request, resolver tenant.Resolver) (context.Context, error) {
	id, err := resolver.Resolve(r.Context(), requestOf(r))
	if err != nil {
		return nil, fmt.Errorf("httptenant: %w", err)
	}
	ctx, err := tenant.Bind(r.Context(), id)
	if err != nil {
		return nil, fmt.Errorf("httptenant: %w", err)
	}
	return ctx, nil
}

// requestOf returns the part of a request that resolvers read.
func requestOf(r *http.Request) tenant.Request {
	if r == nil {
		return tenant.Request{}
	}
	req := tenant.Request{Header: r.Header.Values}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && len(r.TLS.VerifiedChains[0]) > 0 {
		req.Certificate = r.TLS.VerifiedChains[0][0]
	}
	return req
}

// Paths returns a function for Options.Public that matches exactly these paths, with any method.
func Paths(paths ...string) func(*http.Request) bool {
	paths = slices.Clone(paths)
	return func(r *http.Request) bool { return r != nil && r.URL != nil && slices.Contains(paths, r.URL.Path) }
}
