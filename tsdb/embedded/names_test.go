package embedded_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var (
	loads  = tsdb.MustDefine("loads", tsdb.Key("host"), codec.Float64(), tsdb.SchemaOptions{})
	drives = tsdb.MustDefine("drives", tsdb.Key("host"), codec.Float64(), tsdb.SchemaOptions{})
)

// A store in a folder is served under the names that a program uses. That program reads what is stored, changes the
// table, creates views, and never sees the names in the folder.
func TestServeUnderOtherNames(t *testing.T) {
	dir, acme, host := t.TempDir(), tenant.MustParse("acme"), tsdb.NewEntity("a")
	at := time.Now().Truncate(time.Second)
	local, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(local.Ensure(t.Context(), loads), loads.For(local, acme).Put(t.Context(), host, at, 1), local.Close())
	if err != nil {
		t.Fatal(err)
	}

	server, err := embedded.NewServer(embedded.Options{Dir: dir, Project: "my-project", Instance: "my-instance"})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- server.Serve(ctx, lis) }()

	conn, err := grpc.NewClient(lis.Addr().String(), append(tsdb.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conf := tsdb.ClientConfig()
	conf.MetricsProvider = bigtable.NoopMetricsProvider{} // the default provider asks Google Cloud's metadata server
	client, err := bigtable.NewClientWithConfig(t.Context(), "my-project", "my-instance", conf, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin, err := bigtable.NewAdminClient(t.Context(), "my-project", "my-instance", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	store, err := tsdb.New(client, "tidemark", tsdb.Options{Admin: admin})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := loads.For(store, acme).Latest(t.Context(), host); err != nil || p.Value != 1 {
		t.Errorf("the point of the folder reads as %v, %v", p, err)
	}
	if err := store.Ensure(t.Context(), loads, drives); err != nil {
		t.Errorf("changing the table: %v", err)
	}
	if err := store.EnsureView(t.Context(), acme, loads, drives); err != nil {
		t.Errorf("creating a view: %v", err)
	}
	if err := drives.For(store, acme).Put(t.Context(), host, at, 2); err != nil {
		t.Error(err)
	}

	if tables, err := admin.Tables(t.Context()); err != nil || len(tables) != 1 || tables[0] != "tidemark" {
		t.Errorf("the tables are %v, %v; want tidemark", tables, err)
	}
	if views, err := admin.AuthorizedViews(t.Context(), "tidemark"); err != nil || len(views) != 1 {
		t.Errorf("the views are %v, %v; want 1", views, err)
	}
	if _, err := admin.TableInfo(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), "my-project") || strings.Contains(err.Error(), "local") {
		t.Errorf("a missing table: %v, want an error that names my-project", err)
	}
	other, err := bigtable.NewAdminClient(t.Context(), "my-project", "my-instance-2", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	if tables, err := other.Tables(t.Context()); err != nil || len(tables) != 0 {
		t.Errorf("another instance has the tables %v, %v; want none", tables, err)
	}
	if err := errors.Join(store.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}

	local, err = embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	if p, err := drives.For(local, acme).Latest(t.Context(), host); err != nil || p.Value != 2 {
		t.Errorf("the program's point in the folder is %v, %v", p, err)
	}
}

func TestServeNames(t *testing.T) {
	for _, opts := range []embedded.Options{{Project: "a/b"}, {Instance: "a/b"}} {
		server, err := embedded.NewServer(opts)
		if !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("the names %q, %q: %v, want ErrInvalid", opts.Project, opts.Instance, err)
			server.Close()
		}
	}
}

// TestServeNamesWithInterceptors serves under other names, with interceptors of the program.
func TestServeNamesWithInterceptors(t *testing.T) {
	server, err := embedded.NewServer(embedded.Options{Project: "my-project", ServerOptions: []grpc.ServerOption{
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			return handle(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return handle(srv, s)
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}
