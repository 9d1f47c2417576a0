// Package httptenant finds out whose each request to an HTTP server is, and lets none through of which that is not known.
//
//	edge, err := httptenant.New(tenant.FromHeader("X-Tenant"), httptenant.Options{Public: httptenant.Paths("/healthz")})
//	http.ListenAndServe(addr, edge(mux))
//
// Behind it, tenant.FromContext has the tenant of a request's context, and so have Schema.FromContext of package tsdb and
// every call of a repository. A store that was opened with RequireTenant refuses calls that did not come this way.
package httptenant

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// ErrInvalid is wrapped by the errors of New.
var ErrInvalid = errors.New("httptenant: invalid input")

// Options are what a server may decide. The zero value has no public requests and answers by convention.
type Options struct {
	// Public says which requests pass without a tenant, such as those for health. Their credentials are not looked at, and
	// their context has no tenant. Nil is none; Paths makes one that cannot be talked round with a clever path.
	Public func(*http.Request) bool
	// Challenge is the header WWW-Authenticate of an answer with 401, which tells callers how to authenticate. Empty is
	// "Bearer".
	Challenge string
	// Answer writes the answer to a request that is turned away, for a server with a form of its own; StatusOf has the
	// status, and with 401 has to go a header WWW-Authenticate. The error is for logs and not for the caller: it may name
	// tenants. Nil is problem details by RFC 9457, as Problem writes them.
	Answer func(w http.ResponseWriter, r *http.Request, err error)
}

// New returns a middleware that asks the resolver whose a request is, and puts the tenant into the request's context. It
// turns away a request without good credentials with 401, one whose credentials name no tenant, or another one than its
// context carries already, with 403, and one of which the resolver cannot find it out with 500. The handler is then not
// called. The error of New matches ErrInvalid.
//
// The middleware is safe for concurrent use, costs a request about a microsecond and half a kilobyte beside what the resolver
// does, and reads nothing of the body.
func New(resolver tenant.Resolver, opts Options) (func(http.Handler) http.Handler, error) {
	if resolver == nil {
		return nil, invalid.New(ErrInvalid, "resolver", "nil", "a tenant.Resolver")
	}
	if strings.ContainsFunc(opts.Challenge, func(c rune) bool { return c < ' ' || c > '~' }) {
		return nil, invalid.New(ErrInvalid, "Challenge", invalid.Quote(opts.Challenge), "printable ASCII")
	}
	answer := opts.Answer
	if answer == nil {
		answer = func(w http.ResponseWriter, _ *http.Request, err error) { Problem(w, opts.Challenge, err) }
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
	id, err := resolver.Resolve(r.Context(), RequestOf(r))
	if err != nil {
		return nil, fmt.Errorf("httptenant: %w", err)
	}
	ctx, err := tenant.Bind(r.Context(), id)
	if err != nil {
		return nil, fmt.Errorf("httptenant: %w", err)
	}
	return ctx, nil
}

// RequestOf returns what resolvers look at in a request, for a server that asks them itself.
func RequestOf(r *http.Request) tenant.Request {
	if r == nil {
		return tenant.Request{}
	}
	req := tenant.Request{Header: r.Header.Values}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && len(r.TLS.VerifiedChains[0]) > 0 {
		req.Certificate = r.TLS.VerifiedChains[0][0]
	}
	return req
}

// Paths returns, for Options.Public, whether a request is for exactly one of the paths, by whatever method.
func Paths(paths ...string) func(*http.Request) bool {
	paths = slices.Clone(paths)
	return func(r *http.Request) bool { return r != nil && r.URL != nil && slices.Contains(paths, r.URL.Path) }
}
