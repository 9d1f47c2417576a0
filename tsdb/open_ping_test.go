package tsdb_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/tsdb"
)

// unpinged is a service that denies the caller rights at the instance.
type unpinged struct {
	btpb.UnimplementedBigtableServer
}

func (unpinged) PingAndWarm(context.Context, *btpb.PingAndWarmRequest) (*btpb.PingAndWarmResponse, error) {
	return nil, grpcstatus.Error(codes.PermissionDenied, "missing bigtable.instances.ping")
}

// TestOpenNeedsARightAtTheInstance: the client does not open without bigtable.instances.ping, which a role at the table
// does not include. docs/production.md says so; if the client changes, the documented role may shrink.
func TestOpenNeedsARightAtTheInstance(t *testing.T) {
	t.Setenv("BIGTABLE_EMULATOR_HOST", "")
	lis, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	btpb.RegisterBigtableServer(srv, unpinged{})
	served := make(chan error)
	go func() { served <- srv.Serve(lis) }()
	defer func() {
		srv.Stop()
		<-served
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	store, err := tsdb.Open(ctx, tsdb.Config{
		Project: "p", Instance: "i", Table: "t", MetricsProvider: bigtable.NoopMetricsProvider{},
		ClientOptions: []option.ClientOption{
			option.WithEndpoint(lis.Addr().String()), option.WithoutAuthentication(), option.WithGRPCConnectionPool(1),
			option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		},
	})
	if err == nil {
		_ = store.Close()
		t.Fatal("Open succeeded without the right")
	}
	if !strings.Contains(err.Error(), "bigtable.instances.ping") {
		t.Error(err)
	}
}
