// Package inproc connects the official Bigtable client to an engine in the same process. Calls on its gRPC connection
// run the engine's methods directly: without a network, marshalling or a goroutine per call.
//
// Messages are passed by reference, not copied. The engine neither keeps nor changes requests. A receiver may read an
// answer, and must not change it: the messages with the name of a family or a column are shared within one ReadRows
// stream.
package inproc

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// target is never resolved or dialed: no call reaches the transport.
const target = "passthrough:///tidemark.engine"

// Dial returns a connection to an engine. Interceptors in opts run around the engine's calls, in their order. Closing
// the connection does not close the engine.
func Dial(e *engine.Engine, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	if e == nil {
		return nil, errors.New("inproc: nil engine")
	}
	c := &caller{engine: e}
	all := append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)
	all = append(all, grpc.WithChainUnaryInterceptor(c.unary), grpc.WithChainStreamInterceptor(c.stream))
	conn, err := grpc.NewClient(target, all...)
	if err != nil {
		return nil, fmt.Errorf("inproc: %w", err)
	}
	return conn, nil
}

// caller makes the calls of one connection.
type caller struct{ engine *engine.Engine }

// errClosing returns the error of a call on a closed connection, the same as for a network connection.
func errClosing() error {
	return status.Error(codes.Canceled, "grpc: the client connection is closing")
}

// ready returns why a call cannot be made, or nil.
func ready(ctx context.Context, cc *grpc.ClientConn) error {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	if cc.GetState() == connectivity.Shutdown {
		return errClosing()
	}
	return nil
}

// before applies the call options that need a value before the call ends.
func before(opts []grpc.CallOption) {
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = metadata.MD{}
		case grpc.PeerCallOption:
			*o.PeerAddr = peer.Peer{Addr: address{}}
		}
	}
}

// after applies the call options that wait for the end of the call.
func after(opts []grpc.CallOption, err error) {
	for _, o := range opts {
		switch o := o.(type) {
		case grpc.TrailerCallOption:
			*o.TrailerAddr = metadata.MD{}
		case grpc.OnFinishCallOption:
			o.OnFinish(err)
		}
	}
}

// address is the engine's network address.
type address struct{}

func (address) Network() string { return "inproc" }
func (address) String() string  { return "engine" }

// methods are the unary methods of both services by full name, as a gRPC server dispatches them.
var methods = func() map[string]grpc.MethodHandler {
	out := make(map[string]grpc.MethodHandler)
	for _, service := range []grpc.ServiceDesc{bigtablepb.Bigtable_ServiceDesc, adminpb.BigtableTableAdmin_ServiceDesc} {
		for _, m := range service.Methods {
			out["/"+service.ServiceName+"/"+m.MethodName] = m.Handler
		}
	}
	return out
}()
