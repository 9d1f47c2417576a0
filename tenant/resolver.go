package tenant

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
)

// The errors of the edge, to tell apart with errors.Is. Whoever answers a caller goes by them and keeps their text for the
// log, as it may name tenants.
var (
	// ErrUnauthenticated: it is not known who the caller is, as there are no credentials or they are not good. HTTP answers
	// 401, gRPC UNAUTHENTICATED.
	ErrUnauthenticated = errors.New("tenant: unauthenticated")
	// ErrNoCredentials: the request has none of the kind that a resolver looks for. It matches ErrUnauthenticated too, and
	// is the one error that Agree passes over.
	ErrNoCredentials = fmt.Errorf("%w: no credentials", ErrUnauthenticated)
	// ErrForbidden: the caller's credentials name no tenant, or more than one. HTTP answers 403, gRPC PERMISSION_DENIED.
	ErrForbidden = errors.New("tenant: forbidden")
	// ErrBound: the request is another tenant's already. It matches ErrForbidden too.
	ErrBound = fmt.Errorf("%w: the context carries another tenant", ErrForbidden)
)

// errResolver says that a resolver was put together wrongly. It matches none of the errors of the edge, as the fault is not
// the caller's.
var errResolver = errors.New("tenant: invalid resolver")

// Request is what a resolver may look at besides the context: the same for HTTP and gRPC. Packages httptenant and
// grpctenant make it. The zero Request has nothing.
type Request struct {
	// Header returns the values of a header (of HTTP) or a key of the metadata (of gRPC), whatever the case of its name, in
	// the order in which they came. Nil is no headers.
	Header func(name string) []string
	// Certificate is the caller's own certificate, where the server has verified it (tls.VerifyClientCertIfGiven or
	// tls.RequireAndVerifyClientCert), and else nil: one that was only presented proves nothing.
	Certificate *x509.Certificate
}

// header returns the values of a header.
func (r Request) header(name string) []string {
	if r.Header == nil {
		return nil
	}
	return r.Header(name)
}

// Resolver finds out whose a request is. Its error matches ErrNoCredentials, ErrUnauthenticated or ErrForbidden where the
// caller is to blame; any other says that it could not be found out. A Resolver is used by many requests at once. One that
// asks another service has to end with ctx.
type Resolver interface {
	Resolve(ctx context.Context, r Request) (ID, error)
}

// ResolverFunc is a function as a Resolver.
type ResolverFunc func(ctx context.Context, r Request) (ID, error)

// Resolve calls f. A nil f resolves nothing.
func (f ResolverFunc) Resolve(ctx context.Context, r Request) (ID, error) {
	if f == nil {
		return ID{}, fmt.Errorf("%w: a nil function", errResolver)
	}
	return f(ctx, r)
}

// FromHeader takes the tenant from a header. It believes whatever the header says, so it is for services that are reached
// only through a proxy that has authenticated the caller, and which sets the header itself and drops the caller's own: who
// can reach the service past the proxy can be any tenant. Without the header there are no credentials; sent twice, empty or
// with something that is no name, it is ErrForbidden.
func FromHeader(name string) Resolver {
	return ResolverFunc(func(_ context.Context, r Request) (ID, error) {
		values := r.header(name)
		if len(values) == 0 {
			return ID{}, ErrNoCredentials
		}
		return one("the header "+name, values)
	})
}

// FromClaim takes the tenant from what an authentication that ran before has put into the context, such as a claim of a
// token that it has verified. False says that there are no credentials; a claim that is no name is ErrForbidden.
func FromClaim(claim func(ctx context.Context) (name string, ok bool)) Resolver {
	return ResolverFunc(func(ctx context.Context, _ Request) (ID, error) {
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

// Agree asks all resolvers, for callers that may come in several ways. Those that find no credentials are passed over; all
// others have to name the same tenant, or the error is ErrForbidden. Any other error of one of them is the error of all: bad
// credentials are not made good by others.
func Agree(resolvers ...Resolver) Resolver {
	resolvers = append([]Resolver(nil), resolvers...)
	return ResolverFunc(func(ctx context.Context, r Request) (ID, error) {
		var found ID
		for _, resolver := range resolvers {
			if resolver == nil {
				return ID{}, fmt.Errorf("%w: a nil one to agree", errResolver)
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
				return ID{}, fmt.Errorf("%w: the credentials are of %s and of %s", ErrForbidden, found, id)
			}
			found = id
		}
		if found.IsZero() {
			return ID{}, ErrNoCredentials
		}
		return found, nil
	})
}

// one returns the tenant that credentials name, of which there may be no other.
func one(where string, names []string) (ID, error) {
	switch len(names) {
	case 0:
		return ID{}, fmt.Errorf("%w: %s names no tenant", ErrForbidden, where)
	case 1:
	default:
		return ID{}, fmt.Errorf("%w: %s comes %d times", ErrForbidden, where, len(names))
	}
	id, err := Parse(names[0])
	if err != nil {
		// Without the value: a resolver that looks at the wrong place would put secrets into logs.
		return ID{}, fmt.Errorf("%w: %s has %d bytes that are no tenant's name", ErrForbidden, where, len(names[0]))
	}
	return id, nil
}
