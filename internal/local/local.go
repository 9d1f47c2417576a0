// Package local runs a Bigtable in this process and dials it.
package local

import (
	"context"
	"net"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// Project and Instance name what an Instance serves. Any name would do.
const (
	Project  = "local"
	Instance = "local"
)

// Server is a Bigtable in this process.
type Server struct {
	lis *bufconn.Listener
	srv *bttest.Server
}

// Open starts a Server that keeps everything in memory.
func Open() (*Server, error) {
	lis := bufconn.Listen(1 << 20)
	srv, err := bttest.NewServerWithListener(lis)
	if err != nil {
		return nil, err
	}
	return &Server{lis: lis, srv: srv}, nil
}

// Dial returns a connection to the server, through the interceptors in opts, the first one outermost.
func (s *Server) Dial(opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	opts = append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.lis.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<28), grpc.MaxCallRecvMsgSize(1<<28)),
	)
	return grpc.NewClient("passthrough:///local", opts...)
}

// Close stops the server and forgets what it holds. Connections to it must be closed before.
func (s *Server) Close() error {
	err := s.lis.Close() // before the server, or its Close hangs
	s.srv.Close()
	return err
}

// Clients returns the official clients over a connection that Dial returned. Closing the data client closes conn.
func Clients(ctx context.Context, conn *grpc.ClientConn) (*bigtable.Client, *bigtable.AdminClient, error) {
	client, err := bigtable.NewClientWithConfig(ctx, Project, Instance,
		bigtable.ClientConfig{DisableSession: true, MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	if err != nil {
		return nil, nil, err
	}
	admin, err := bigtable.NewAdminClient(ctx, Project, Instance, option.WithGRPCConn(conn))
	if err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	return client, admin, nil
}
