// Package tsdbtest gives tests a store of their own, on a connection that they can make fail.
//
//	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, readings)
//	conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRow).Times(1))
//
// The store is a real one, on the embedded engine, in memory; faults happen on its connection, below everything that the
// store does about them. Nothing is mocked.
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

// Options are what a test may decide. The zero value is good.
type Options struct {
	tsdb.StoreOptions
	// Dir is the folder in which the engine keeps the table, made where it does not exist. Empty is in memory.
	Dir string
	// ViewsFor are tenants for which Open makes authorized views of its datasets; it then sets StoreOptions.Views. None is a
	// store without views.
	ViewsFor []tenant.ID
	// DialOptions are put on the connection between the store's interceptors and the faults.
	DialOptions []grpc.DialOption
	// TCP serves the engine on the loopback interface and lets the official client dial it, as it dials Cloud Bigtable. It is
	// slower, and does not work in a bubble of testing/synctest. By default the engine is called in process. Setting the
	// variable TIDEMARK_TEST_TCP makes it so for all stores of this package.
	TCP bool
}

// Open returns a new store that holds the datasets, and the connection that it works through. Both end with the test.
// Whatever fails ends the test at once.
func Open(t testing.TB, opts Options, datasets ...tsdb.Dataset) (*tsdb.Store, *Conn) {
	t.Helper()
	ctx := context.Background()
	opts.Views = opts.Views || len(opts.ViewsFor) > 0
	conf := engine.Options{Dir: opts.Dir, Clock: opts.Clock, GCInterval: -1}
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
	client, admin, err := conn.dial(ctx, slices.Concat(tsdb.DialOptions(), opts.DialOptions, conn.dialOptions()))
	fatal(t, err)
	store, err := tsdb.New(client, Table, tsdb.Options{StoreOptions: opts.StoreOptions, Admin: admin, OnClose: client.Close})
	fatal(t, err)
	in, err := inside.OfStore(store)
	fatal(t, err)
	in.WatchClock(server.Watch())
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

// OpenTable is Open with a client beside the store that sees the same table without any faults, for tests that look at
// what is really stored.
func OpenTable(t testing.TB, opts Options, datasets ...tsdb.Dataset) (*tsdb.Store, *Conn, *bigtable.Table) {
	t.Helper()
	store, conn := Open(t, opts, datasets...)
	client, _ := clients(t, conn, nil)
	return store, conn, client.Open(Table)
}

// Clients returns the official clients over the same engine as the store of conn, through the same faults but without the
// store's interceptors: what a program that writes by hand would see.
func Clients(t testing.TB, conn *Conn) (*bigtable.Client, *bigtable.AdminClient) {
	t.Helper()
	return clients(t, conn, conn.dialOptions())
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
