// Latestapi answers "now" over HTTP: the latest point of one entity, of many, of a whole group, and the history behind them
// by page and by window. The bearer token of a request selects the tenant.
//
//	go run ./examples/apps/latestapi -demo          # some made-up data, for the token "demo"; keeps it in ./tidemark-data
//	curl -H 'Authorization: Bearer demo' 'http://127.0.0.1:8088/v1/weather/latest?site=berlin&device=roof-7'
//
// README.md has a curl command and its response for each query. In this folder main.go opens and closes everything and
// flags.go is the command line; datasets.go has the schemas and reads the store, the handlers are in latest.go, group.go,
// history.go, range.go, windows.go, groups.go, align.go, outages.go, chart.go, live.go and index.go, on what server.go, params.go and problem.go do for all of them.
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
			StoreOptions: tsdb.StoreOptions{CursorKeys: o.cursorKeys, Cache: o.cache, RequireTenant: true, Limits: limits, ProfileLimits: o.profiles, Telemetry: seen.Telemetry},
			Dir:          o.dir,
			DialOptions:  seen.DialOptions,
		})
	}
	config, err := tsdb.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	config.Cache = o.cache
	config.RequireTenant = true
	config.Limits, config.ProfileLimits = limits, o.profiles
	config.Telemetry, config.DialOptions = seen.Telemetry, seen.DialOptions
	config.CursorKeys = o.cursorKeys // from the file, or else from the environment
	return tsdb.Open(ctx, config)
}

// prepare makes the table fit the schemas, or only compares them, so that a server on Cloud Bigtable needs no admin rights.
func prepare(ctx context.Context, store *tsdb.Store, o options) error {
	if !o.ensure {
		if err := store.Verify(ctx, schemas...); err != nil {
			return fmt.Errorf("compare the table with the schemas, which -ensure would create: %w", err)
		}
		return nil
	}
	if err := store.Ensure(ctx, schemas...); err != nil {
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
	seen, err := observe.Open(ctx, "latestapi", o.seen, log)
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
	if err := prepare(ctx, store, o); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Store     %s\n", o.where())
	seen.Print(stdout)
	if o.demo {
		n, err := fill(ctx, store, time.Now())
		if err != nil {
			return fmt.Errorf("store the demo data: %w", err)
		}
		fmt.Fprintf(stdout, "Demo      %d points of tenant %s, for the token %s\n", n, demoTenant, demoToken)
	}
	if o.ownKey {
		fmt.Fprintln(stdout, "Cursors   of this process only; -cursor-keys makes them last, and valid in other replicas")
	}
	return serve(ctx, o, store, lis, stdout, log)
}

// errStopping ends the streams of a server that stops.
var errStopping = errors.New("the server stops")

// serve answers requests until ctx ends, and waits for running ones.
func serve(ctx context.Context, o options, store *tsdb.Store, lis net.Listener, stdout io.Writer, log *slog.Logger) error {
	s, err := newServer(store, o.tokens, o.limits, log)
	if err != nil {
		return errors.Join(err, lis.Close())
	}
	srv := s.http()
	fmt.Fprintf(stdout, "Listening on http://%s; Ctrl-C stops\n", lis.Addr())
	printLines(stdout, lis.Addr().String(), o.demo)
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		fmt.Fprintln(stdout, "Stopping  requests under way may finish; Ctrl-C again ends at once")
		s.stopping.Store(true)
		s.stop(errStopping)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain)
		defer cancel()
		stopped <- srv.Shutdown(bounded)
	})
	err = srv.Serve(lis)
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
		fmt.Fprintf(os.Stderr, "latestapi: %v; -help lists the flags\n", err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "latestapi: %v\n", err)
	os.Exit(1)
}
