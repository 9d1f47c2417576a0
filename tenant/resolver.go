package tenant

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
)

// Errors of a service's edge. Compare with errors.Is. Respond to a caller by the error's kind, and only log its text:
// it may name tenants.
var (
	// ErrUnauthenticated: the caller is unknown, because credentials are missing or invalid. The response is 401 in
	// HTTP, UNAUTHENTICATED in gRPC.
	ErrUnauthenticated = errors.New("tenant: unauthenticated")
	// ErrNoCredentials: the request has no credentials of the kind that a resolver reads. It also matches
	// ErrUnauthenticated. Agree ignores only this error.
	ErrNoCredentials = fmt.Errorf("%w: no credentials", ErrUnauthenticated)
	// ErrForbidden: the caller's credentials name no tenant, or several. The response is 403 in HTTP,
	// PERMISSION_DENIED in gRPC.
	ErrForbidden = errors.New("tenant: forbidden")
)

// errResolver: the resolver was built incorrectly. It matches no error of the edge, because the caller is not at
// fault.
var errResolver = errors.New("tenant: invalid resolver")

// Request is the part of a request that a resolver reads, in addition to the context: the same for HTTP and gRPC.
// Packages httptenant and grpctenant make it. The zero Request is empty.
type Request struct {
	// Header returns the values of an HTTP header or of a gRPC metadata key, in their order. The name's case does not
	// matter. Nil means no headers.
	Header func(name string) []string
	// Certificate is the caller's own certificate if the server has verified it (tls.VerifyClientCertIfGiven or
	// tls.RequireAndVerifyClientCert), else nil. An unverified certificate proves nothing.
	Certificate *x509.Certificate
}

// header returns the values of a header.
func (r Request) header(name string) []string {
	if r.Header == nil {
		return nil
	}
	return r.Header(name)
}

// Resolver determines the tenant of a request. If the caller is at fault, its error matches ErrNoCredentials,
// ErrUnauthenticated or ErrForbidden. Any other error means that the tenant could not be determined. A Resolver must
// be safe for concurrent use. If it calls another service, it must return when ctx ends.
type Resolver interface {
	Resolve(ctx context.Context, r Request) (ID, error)
}

// resolverFunc is a function as a Resolver.
type resolverFunc func(ctx context.Context, r Request) (ID, error)

func (f resolverFunc) Resolve(ctx context.Context, r Request) (ID, error) { return f(ctx, r) }

// FromHeader takes the tenant from a header, and trusts its value. Use it only for services that callers reach
// through a proxy. The proxy must authenticate the caller, set the header, and drop the caller's own header. A caller
// that can bypass the proxy can be any tenant. Without the header, the error is ErrNoCredentials. If the header is
// repeated, empty or not a valid name, it is ErrForbidden.
func FromHeader(name string) Resolver {
	return resolverFunc(func(_ context.Context, r Request) (ID, error) {
		values := r.header(name)
		if len(values) == 0 {
			return ID{}, ErrNoCredentials
		}
		return one("the header "+name, values)
	})
}

// FromClaim takes the tenant from a value that an earlier authentication has put into the context, such as a claim of
// a verified token. If ok is false, the error is ErrNoCredentials. If the claim is not a valid name, it is
// ErrForbidden.
func FromClaim(claim func(ctx context.Context) (name string, ok bool)) Resolver {
	return resolverFunc(func(ctx context.Context, _ Request) (ID, error) {
		if claim == nil {
			return ID{}, fmt.Errorf("%w: a nil claim", errResolver)
		}
		name, ok := claim(ctx)
		if !ok {
			return ID{}, ErrNoCredentials
		}
		return one("the claim", []string{name})
	})
}

// Agree asks all resolvers, for callers with different kinds of credentials. It ignores resolvers that return
// ErrNoCredentials. All others must return the same tenant, else the error is ErrForbidden. It returns any other
// error of a resolver: valid credentials of another kind do not help.
func Agree(resolvers ...Resolver) Resolver {
	resolvers = append([]Resolver(nil), resolvers...)
	return resolverFunc(func(ctx context.Context, r Request) (ID, error) {
		var found ID
		for _, resolver := range resolvers {
			if resolver == nil {
				return ID{}, fmt.Errorf("%w: a nil resolver in Agree", errResolver)
			}
			id, err := resolver.Resolve(ctx, r)
			switch {
			case errors.Is(err, ErrNoCredentials):
				continue
			case err != nil:
				return ID{}, err
			case id.IsZero():
				return ID{}, fmt.Errorf("%w: it returns the zero ID", errResolver)
			case !found.IsZero() && id != found:
				return ID{}, fmt.Errorf("%w: the credentials name two tenants, %s and %s", ErrForbidden, found, id)
			}
			found = id
		}
		if found.IsZero() {
			return ID{}, ErrNoCredentials
		}
		return found, nil
	})
}

// one returns the tenant that credentials name. They must name exactly one.
func one(where string, names []string) (ID, error) {
	switch len(names) {
	case 0:
		return ID{}, fmt.Errorf("%w: %s names no tenant", ErrForbidden, where)
	case 1:
	default:
		return ID{}, fmt.Errorf("%w: %s is present %d times", ErrForbidden, where, len(names))
	}
	id, err := Parse(names[0])
	if err != nil {
		// Do not show the value: a resolver that reads the wrong place would put secrets into logs.
		return ID{}, fmt.Errorf("%w: %s has %d bytes that are not a valid tenant name", ErrForbidden, where, len(names[0]))
	}
	return id, nil
}
