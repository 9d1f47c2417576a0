package embedded_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"cloud.google.com/go/bigtable"
	"go.uber.org/goleak"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// A client over the network reads the folder's rows, also after the server was stopped and started again.
func TestServe(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	for _, first := range []bool{true, false} {
		server, err := embedded.NewServer(embedded.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := embedded.Open(t.Context(), dir); !errors.Is(err, tsdb.ErrLocked) {
			t.Errorf("opening the folder of a running server: %v, want ErrLocked", err)
		}
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- server.Serve(ctx, lis) }()

		conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		admin, err := bigtable.NewAdminClient(ctx, embedded.Project, embedded.Instance, option.WithGRPCConn(conn))
		if err != nil {
			t.Fatal(err)
		}
		client, err := bigtable.NewClientWithConfig(ctx, embedded.Project, embedded.Instance, bigtable.ClientConfig{
			MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true,
		}, option.WithGRPCConn(conn))
		if err != nil {
			t.Fatal(err)
		}
		table := client.Open("t")
		if first {
			if err := admin.CreateTableFromConf(ctx, &bigtable.TableConf{
				TableID:        "t",
				ColumnFamilies: map[string]bigtable.Family{"f": {}},
			}); err != nil {
				t.Fatal(err)
			}
			m := bigtable.NewMutation()
			m.Set("f", "q", 1000, []byte("kept"))
			if err := table.Apply(ctx, "row", m); err != nil {
				t.Fatal(err)
			}
		}
		row, err := table.ReadRow(ctx, "row")
		if err != nil || len(row["f"]) != 1 || string(row["f"][0].Value) != "kept" {
			t.Errorf("the row reads as %v, %v", row, err)
		}
		admin.Close()
		client.Close()
		conn.Close()
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve of a stopped server returns %v, want nil", err)
		}
		if err := server.Close(); err != nil {
			t.Errorf("closing a stopped server: %v", err)
		}
	}
}

// A server that cannot accept clients returns an error. Otherwise its program would end without a message.
func TestServeReportsItsListener(t *testing.T) {
	server, err := embedded.NewServer(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lis.Close()
	if err := server.Serve(t.Context(), lis); err == nil {
		t.Error("Serve with a closed listener = nil, want an error")
	}
}
