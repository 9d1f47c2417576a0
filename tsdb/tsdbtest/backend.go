package tsdbtest

import (
	"context"
	"net"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/internal/local"
)

// backend is the engine behind a Conn, and its address.
type backend struct {
	// A local.Server. A field of that type would make the compiler compile the engine's generic types for each test.
	server interface {
		Register(r grpc.ServiceRegistrar)
		Dial(opts ...grpc.DialOption) (*grpc.ClientConn, error)
		Collect(ctx context.Context) error
	}
	addr string // on the loopback interface; empty for calls in process
}

// serve serves the engine on the loopback interface.
func (b *backend) serve() (stop func(), err error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv := grpc.NewServer(grpc.MaxRecvMsgSize(1<<28), grpc.MaxSendMsgSize(1<<28))
	b.server.Register(srv)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(lis)
	}()
	b.addr = lis.Addr().String()
	return func() {
		srv.Stop()
		<-done
	}, nil
}

// dial returns the official clients, through the interceptors in opts.
func (b *backend) dial(ctx context.Context, opts []grpc.DialOption) (*bigtable.Client, *bigtable.AdminClient, error) {
	if b.addr == "" {
		conn, err := b.server.Dial(opts...)
		if err != nil {
			return nil, nil, err
		}
		return local.Clients(ctx, conn)
	}
	dial := []option.ClientOption{
		option.WithEndpoint(b.addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}
	for _, o := range opts {
		dial = append(dial, option.WithGRPCDialOption(o))
	}
	client, err := bigtable.NewClientWithConfig(ctx, local.Project, local.Instance, bigtable.ClientConfig{
		DisableSession: true, DisableDirectAccess: true, MetricsProvider: bigtable.NoopMetricsProvider{},
	}, dial...)
	if err != nil {
		return nil, nil, err
	}
	admin, err := bigtable.NewAdminClient(ctx, local.Project, local.Instance, dial...)
	if err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	return client, admin, nil
}
