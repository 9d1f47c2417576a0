package grpctenant

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Client sends the tenant of a call's context to the next service, under a metadata key that tenant.FromHeader reads
// there. Use it between services that trust each other. Its methods are interceptors. It is safe for concurrent use.
// The zero Client fails every call.
type Client struct {
	// Key is the metadata key, such as "x-tenant". It is required.
	Key string
}

// Unary is a grpc.UnaryClientInterceptor that sends the tenant of the context under the key, instead of the key's
// values. It does not send a call without a tenant; the error matches tenant.ErrNoCredentials.
func (c Client) Unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if invoker == nil {
		return invalid.New(invalid.ErrGRPC, "invoker", "nil", "the invoker of a call")
	}
	ctx, err := c.outgoing(ctx, method)
	if err != nil {
		return err
	}
	return invoker(ctx, method, req, reply, cc, opts...)
}

// Stream is Unary for streams: a grpc.StreamClientInterceptor.
func (c Client) Stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if streamer == nil {
		return nil, invalid.New(invalid.ErrGRPC, "streamer", "nil", "the streamer of a call")
	}
	ctx, err := c.outgoing(ctx, method)
	if err != nil {
		return nil, err
	}
	return streamer(ctx, desc, cc, method, opts...)
}

// outgoing returns the context with its tenant in the metadata.
func (c Client) outgoing(ctx context.Context, method string) (context.Context, error) {
	if c.Key == "" {
		return nil, invalid.New(invalid.ErrGRPC, "Key", "empty", `a key such as "x-tenant"`)
	}
	id, ok := tenant.FromContext(ctx)
	if !ok || id.IsZero() {
		return nil, fmt.Errorf("grpctenant: %w in the context of a call of %s", tenant.ErrNoCredentials, method)
	}
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	md.Set(c.Key, id.String())
	return metadata.NewOutgoingContext(ctx, md), nil
}
