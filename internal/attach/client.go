package attach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// Dial connects to the owner of a folder once. If there is no owner, or it serves nobody, the error is that of the
// socket.
func Dial(ctx context.Context, dir string) (net.Conn, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	conn, secret, err := dialOwner(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("no process serves the folder %s: %w", dir, err)
	}
	if err := greet(ctx, conn, secret); err != nil {
		return nil, errors.Join(fmt.Errorf("attaching to the process that has the folder %s open: %w", dir, err), conn.Close())
	}
	return conn, nil
}

// reconnect is how often a client looks for the owner, or its successor. Calls fail or wait meanwhile, so the delay is
// much shorter than the timeouts of calls.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 200 * time.Millisecond},
	MinConnectTimeout: 20 * time.Second, // dial may have to open a large folder
}

// Conn returns a connection for Bigtable's clients that calls dial when it has none.
func Conn(dial func(context.Context) (net.Conn, error), opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	all := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(reconnect),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse), grpc.MaxCallSendMsgSize(maxRequest)),
	}, opts...)
	return grpc.NewClient("passthrough:///tidemark.folder", all...)
}
