// Promapi serves the datasets of a store to Grafana and to Prometheus: PromQL queries, remote write and remote read. The credentials
// of a request select the tenant.
//
//	go run . -demo       # in this folder, with GOWORK=off; made-up data for the token "demo"
//	curl -H 'Authorization: Bearer demo' 'http://127.0.0.1:9099/api/v1/query?query=trucks_speed_kmh'
//
// README.md has a command for each use. main.go opens and closes everything and flags.go is the command line. Requests come in through
// auth.go and server.go. The query API is in query.go, lists.go and exemplars.go, and reads through querier.go: the datasets of other
// programs with catalogue.go, mapped.go, fields.go and rollups.go, the series of remote write with promseries.go. Remote write is in write.go and writebatch.go,
// remote read in read.go; sample.go and seriesname.go say how their series are stored.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/observe"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// openStore is the only code that depends on where the points are stored: in a folder, or on Cloud Bigtable.
func openStore(ctx context.Context, o options, limits *limit.Limiter, seen *observe.Outlet) (*tsdb.Store, error) {
	if !o.cloud {
		return embedded.New(ctx, embedded.Options{
			StoreOptions: tsdb.StoreOptions{RequireTenant: true, Limits: limits, ProfileLimits: o.profiles, Telemetry: seen.Telemetry},
			Dir:          o.dir,
			DialOptions:  seen.DialOptions,
		})
	}
	config, err := tsdb.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	config.RequireTenant = true
	config.Limits, config.ProfileLimits = limits, o.profiles
	config.Telemetry, config.DialOptions = seen.Telemetry, seen.DialOptions
	return tsdb.Open(ctx, config)
}

// prepare makes the table fit the schema, or only compares them, so that a server on Cloud Bigtable needs no admin rights.
func prepare(ctx context.Context, store *tsdb.Store, schema tsdb.Dataset, o options) error {
	if !o.ensure {
		if err := store.Verify(ctx, schema); err != nil {
			return fmt.Errorf("compare the table with the schema, which -ensure would create: %w", err)
		}
		return nil
	}
	if err := store.Ensure(ctx, schema); err != nil {
		return fmt.Errorf("prepare the table: %w", err)
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	// Before opening the store, which takes longer: a port in use is reported at once.
	lis, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s; choose another address with -addr: %w", o.addr, err)
	}
	defer lis.Close()
	log := slog.New(slog.NewTextHandler(stderr, nil))
	seen, err := observe.Open(ctx, "promapi", o.seen, log)
	if err != nil {
		return err
	}
	defer seen.Close()
	table, err := edge.OpenLimits(o.table)
	if err != nil {
		return fmt.Errorf("-limits: %w", err)
	}
	go table.Watch(ctx, log)
	store, err := openStore(ctx, o, table.Limiter, seen)
	if err != nil {
		if errors.Is(err, embedded.ErrLocked) {
			return fmt.Errorf("open the store: %w; let that end first, or give another folder with -dir", err)
		}
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	schema, err := defineProm(o.keep)
	if err != nil {
		return err
	}
	if err := prepare(ctx, store, schema, o); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Store     %s\n", o.where())
	seen.Print(stdout)
	writer, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: o.journal}})
	if err != nil {
		return fmt.Errorf("open the writer: %w", err)
	}
	defer func() { // what was acknowledged is stored, or stays in the journal
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain)
		defer cancel()
		err = errors.Join(err, writer.Close(bounded))
	}()
	if o.demo {
		n, err := fill(ctx, store, time.Now())
		if err != nil {
			return fmt.Errorf("store the demo data: %w", err)
		}
		stop, err := rollUp(ctx, store, log)
		if err != nil {
			return err
		}
		defer stop()
		fmt.Fprintf(stdout, "Demo      %d points of tenant %s, for the token %s\n", n, demoTenant, demoToken)
	}
	shown, err := openCatalogue(ctx, store, o.messages, log, seen.Telemetry.MeterProvider)
	if err != nil {
		return fmt.Errorf("map the datasets to metrics: %w", err)
	}
	s, err := newServer(store, writer, schema, resolver(o.tokens, o.behindProxy), o.limits, log, newMappedSource(shown))
	if err != nil {
		return err
	}
	return serve(ctx, o, s, lis, stdout)
}

// serve answers requests until ctx ends, and waits for running ones.
func serve(ctx context.Context, o options, s *server, lis net.Listener, stdout io.Writer) error {
	srv := s.http()
	fmt.Fprintf(stdout, "Listening on http://%s; Ctrl-C stops\n", lis.Addr())
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		fmt.Fprintln(stdout, "Stopping  requests under way may finish; Ctrl-C again ends at once")
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain)
		defer cancel()
		stopped <- srv.Shutdown(bounded)
	})
	err := srv.Serve(lis)
	if stop() { // the server ended without Ctrl-C
		return fmt.Errorf("serve: %w", err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("some requests took longer than %v after Ctrl-C and got no response: %w", o.drain, errors.Join(err, srv.Close()))
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second Ctrl-C ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(os.Stderr, "promapi: %v; -help lists the flags\n", err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "promapi: %v\n", err)
	os.Exit(1)
}
