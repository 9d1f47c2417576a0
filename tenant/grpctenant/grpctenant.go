// Package grpctenant determines the tenant of each call to a gRPC server, and rejects calls without one.
//
//	edge, err := grpctenant.New(tenant.FromHeader("x-tenant"), grpctenant.Options{})
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(edge.Unary), grpc.ChainStreamInterceptor(edge.Stream))
//
// In the handlers, tenant.FromContext returns the tenant from a call's context. Schema.FromContext of package tsdb
// and every call of a repository use it, too. A store that was opened with RequireTenant refuses calls whose context
// has no tenant.
package grpctenant

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Options configure an Edge. The zero value has no public methods.
type Options struct {
	// Public reports which methods ("/grpc.health.v1.Health/Check") may be called without a tenant. Their credentials
	// are ignored, and their context has no tenant. Nil is none.
	Public func(fullMethod string) bool
	// Refused is called with the reason why a call was rejected, for logs: the caller gets only the status. It is
	// called on the call's goroutine. Nil disables it.
	Refused func(ctx context.Context, fullMethod string, err error)
}

// Edge rejects calls without a tenant. Its methods are interceptors. New makes one. It is safe for concurrent use.
type Edge struct {
	resolver tenant.Resolver
	opts     Options
}

// New returns an edge that asks the resolver for the tenant of each call. It fails for a nil resolver.
func New(resolver tenant.Resolver, opts Options) (*Edge, error) {
	if resolver == nil {
		return nil, invalid.New(invalid.ErrGRPC, "resolver", "nil", "a tenant.Resolver")
	}
	return &Edge{resolver: resolver, opts: opts}, nil
}

// Unary is a grpc.UnaryServerInterceptor that puts the call's tenant into its context. Without valid credentials, the
// status is UNAUTHENTICATED. If the credentials name no tenant, or another one than the context already carries, it
// is PERMISSION_DENIED. If the resolver cannot determine the tenant, it is INTERNAL, or the status of a context that
// has ended. In all these cases the handler is not called, and the status has a fixed text that shows nothing of the
// error.
func (e *Edge) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if info == nil || handler == nil {
		return nil, status.Error(codes.Internal, "no method or handler")
	}
	ctx, err := e.admit(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// Stream is Unary for streams: a grpc.StreamServerInterceptor. It determines the tenant once, before the first
// message.
func (e *Edge) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if stream == nil || info == nil || handler == nil {
		return status.Error(codes.Internal, "no stream, method or handler")
	}
	ctx, err := e.admit(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	return handler(srv, &bound{ServerStream: stream, ctx: ctx})
}

// bound is a stream with its tenant.
type bound struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (b *bound) Context() context.Context { return b.ctx }

// admit returns the context of a call with its tenant, or the status for a rejected call.
func (e *Edge) admit(ctx context.Context, method string) (context.Context, error) {
	ctx = ctxerr.Given(ctx)
	if e == nil || e.resolver == nil {
		return nil, answer(ctx, invalid.New(invalid.ErrGRPC, "edge", "the zero value", "an edge from New"))
	}
	if e.opts.Public != nil && e.opts.Public(method) {
		return ctx, nil
	}
	id, err := e.resolver.Resolve(ctx, requestOf(ctx))
	if err == nil {
		var bound context.Context
		if bound, err = tenant.Bind(ctx, id); err == nil {
			return bound, nil
		}
	}
	if e.opts.Refused != nil {
		e.opts.Refused(ctx, method, fmt.Errorf("grpctenant: %w", err))
	}
	return nil, answer(ctx, err)
}

// answer returns the status of a rejected call. Texts are fixed, because the text of an error may name another
// tenant.
func answer(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, tenant.ErrUnauthenticated):
		return status.Error(codes.Unauthenticated, "the call has no credentials, or they are not valid")
	case errors.Is(err, tenant.ErrForbidden):
		return status.Error(codes.PermissionDenied, "the credentials give no access to this tenant, or name none or several")
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.Internal, "the server could not determine the tenant")
}

// requestOf returns the part of a server call's context that resolvers read.
func requestOf(ctx context.Context) tenant.Request {
	ctx = ctxerr.Given(ctx)
	req := tenant.Request{Header: func(name string) []string { return metadata.ValueFromIncomingContext(ctx, name) }}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return req
	}
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
		if chains := info.State.VerifiedChains; len(chains) > 0 && len(chains[0]) > 0 {
			req.Certificate = chains[0][0]
		}
	}
	return req
}
