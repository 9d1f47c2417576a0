// Package tsdbtest gives each test its own store, with a connection that can fail on command.
//
//	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, readings)
//	conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRow).Times(1))
//
// The store is a real store on the embedded engine, in memory. Faults happen on its connection, below all of the
// store's error handling. Nothing is mocked.
package tsdbtest

import (
	"context"
	"os"
	"slices"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Table is the name of the table of every store in this package.
const Table = "tidemark"

// Options configure a store under test. The zero value is useful.
type Options struct {
	tsdb.StoreOptions
	// Dir is the folder of the engine's table. Open creates it if it does not exist. Empty is in memory.
	Dir string
	// ViewsFor are tenants for which Open makes authorized views of its datasets; Open then sets StoreOptions.Views.
	// Empty is a store without views.
	ViewsFor []tenant.ID
	// DialOptions are added to the connection, between the store's interceptors and the faults.
	DialOptions []grpc.DialOption
	// TCP serves the engine on the loopback interface, and the official client dials it as it dials Cloud Bigtable.
	// It is slower, and does not work in a bubble of testing/synctest. By default the engine is called in process.
	// The environment variable TIDEMARK_TEST_TCP sets TCP for all stores of this package.
	TCP bool
}

// Open returns a new store with the datasets, and its connection. The test's cleanup closes both. Any error ends the
// test immediately.
func Open(t testing.TB, opts Options, datasets ...tsdb.Dataset) (*tsdb.Store, *Conn) {
	t.Helper()
	ctx := context.Background()
	opts.Views = opts.Views || len(opts.ViewsFor) > 0
	// In this module's long runs, scans see each row in a state of its own, as Bigtable allows.
	weak := os.Getenv("TIDEMARK_TEST_WEAK") != ""
	conf := engine.Options{Dir: opts.Dir, Clock: opts.Clock, GCInterval: -1, Weak: weak}
	if opts.Clock != nil {
		conf.Steady = clock.Follow(opts.Clock)
	}
	server, err := local.Open(conf)
	fatal(t, err)
	t.Cleanup(func() { _ = server.Close() })
	conn := &Conn{backend: backend{server: server}}
	if opts.TCP || os.Getenv("TIDEMARK_TEST_TCP") != "" {
		stop, err := conn.serve()
		fatal(t, err)
		t.Cleanup(stop)
	}
	client, admin, err := conn.dial(ctx, slices.Concat(tsdb.DialOptions(), opts.DialOptions, conn.DialOptions()))
	fatal(t, err)
	store, err := tsdb.New(client, Table, tsdb.Options{StoreOptions: opts.StoreOptions, Admin: admin, OnClose: client.Close})
	fatal(t, err)
	in, err := inside.Of(store).Internals()
	fatal(t, err)
	in.Service.Use(server.Watch())
	t.Cleanup(func() {
		_ = store.Close()
		_ = admin.Close()
	})
	if len(datasets) > 0 {
		fatal(t, store.Ensure(ctx, datasets...))
		for _, id := range opts.ViewsFor {
			fatal(t, store.EnsureView(ctx, id, datasets...))
		}
	}
	conn.Reset()
	return store, conn
}

// OpenTable is Open, and also returns a client that sees the same table without faults, for tests that check the
// stored rows.
func OpenTable(t testing.TB, opts Options, datasets ...tsdb.Dataset) (*tsdb.Store, *Conn, *bigtable.Table) {
	t.Helper()
	store, conn := Open(t, opts, datasets...)
	client, _ := clients(t, conn, nil)
	return store, conn, client.Open(Table)
}

// Clients returns the official clients for the engine of conn's store, with the same faults but without the store's
// interceptors, as a program without this module would use them.
func Clients(t testing.TB, conn *Conn) (*bigtable.Client, *bigtable.AdminClient) {
	t.Helper()
	return clients(t, conn, conn.DialOptions())
}

func clients(t testing.TB, conn *Conn, opts []grpc.DialOption) (*bigtable.Client, *bigtable.AdminClient) {
	t.Helper()
	client, admin, err := conn.dial(context.Background(), opts)
	fatal(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		_ = admin.Close()
	})
	return client, admin
}

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("tsdbtest: %v", err)
	}
}
