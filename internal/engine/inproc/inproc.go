// Package inproc connects the official Bigtable client to an engine in the same process: a gRPC connection whose calls
// are the engine's methods, with no network, no marshalling and no goroutine per call.
//
// Messages are handed over, not copied. The engine does not keep or change requests, and the parts of an answer are for
// the receiver to read: the messages of a family's or column's name are shared within one ReadRows stream.
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

// target is never resolved or dialed: no call gets as far as the transport.
const target = "passthrough:///tidemark.engine"

// Dial returns a connection to an engine. Interceptors among opts run outside of the engine's calls, in their order.
// Closing the connection does not close the engine.
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

// errClosing is what a closed connection answers, as one over the network does.
func errClosing() error {
	return status.Error(codes.Canceled, "grpc: the client connection is closing")
}

// ready says whether a call can be made.
func ready(ctx context.Context, cc *grpc.ClientConn) error {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	if cc.GetState() == connectivity.Shutdown {
		return errClosing()
	}
	return nil
}

// before answers the call options that ask for something about the call before it ends.
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

// after answers the call options that wait for the end of a call.
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

// address is where the engine is.
type address struct{}

func (address) Network() string { return "inproc" }
func (address) String() string  { return "engine" }

// methods are the unary methods of both services by their full names, as a server would dispatch them.
var methods = func() map[string]grpc.MethodHandler {
	out := make(map[string]grpc.MethodHandler)
	for _, service := range []grpc.ServiceDesc{bigtablepb.Bigtable_ServiceDesc, adminpb.BigtableTableAdmin_ServiceDesc} {
		for _, m := range service.Methods {
			out["/"+service.ServiceName+"/"+m.MethodName] = m.Handler
		}
	}
	return out
}()
