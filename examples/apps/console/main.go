// Console shows a store in a browser: the fleet with its silent entities first, charts of any numbers live and over years, several
// entities side by side. It only reads. The bearer token that a user gives selects the tenant.
//
//	go run ./examples/apps/console -demo       # made-up trucks of the tenant demo, for the token "demo"; then open the printed address
//
// README.md has the pages, the flags and what the server bounds. In this folder main.go opens and closes everything, flags.go is the
// command line, demo.go makes data up. Package web has the pages; a program that ingests can serve them itself.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tidemark-go/tidemark/examples/apps/console/web"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/observe"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// openStore is the only code that depends on where the points are stored: in a folder, or on Cloud Bigtable.
func openStore(ctx context.Context, o options, limits *limit.Limiter, seen *observe.Outlet) (*tsdb.Store, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	keys := [][]byte{key} // of this process: a cursor is only used by the page that got it
	if !o.cloud {
		return embedded.New(ctx, embedded.Options{
			StoreOptions: tsdb.StoreOptions{CursorKeys: keys, RequireTenant: true, Limits: limits, ProfileLimits: o.profiles, Telemetry: seen.Telemetry},
			Dir:          o.dir,
			DialOptions:  seen.DialOptions,
		})
	}
	config, err := tsdb.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	config.CursorKeys, config.RequireTenant = keys, true
	config.Limits, config.ProfileLimits = limits, o.profiles
	config.Telemetry, config.DialOptions = seen.Telemetry, seen.DialOptions
	return tsdb.Open(ctx, config)
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
	var figures *metric.ManualReader // for the operator's pages
	var readers []metric.Reader
	if o.operator.Len() > 0 {
		figures = metric.NewManualReader()
		readers = append(readers, figures)
	}
	seen, err := observe.Open(ctx, "console", o.seen, log, readers...)
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
			return fmt.Errorf("open the store: %w; let that end first, or give another folder with -dir. A program that writes to a folder can serve the pages itself, with package web", err)
		}
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if !o.cloud {
		if err := store.Ensure(ctx); err != nil { // a new folder has no table yet
			return fmt.Errorf("prepare the folder: %w", err)
		}
	}
	fmt.Fprintf(stdout, "Store     %s\n", o.where())
	seen.Print(stdout)
	config := web.Config{
		Store: store, Tenant: o.tokens.Tenant, Secure: o.proxy, Log: log, Requests: o.requests, Timeout: o.timeout,
		Keys: seen.Keys(), Limits: table.Limiter,
		Sessions: web.SessionFile{Name: o.sessions, Tokens: o.tokens.Digest() + o.operator.Digest()},
		Operator: func(token string) bool { _, ok := o.operator.Tenant(token); return ok },
	}
	if figures != nil {
		config.Metrics = figures
	}
	var demo sync.WaitGroup
	defer demo.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.demo {
		n, err := fill(ctx, store, time.Now())
		if ctx.Err() != nil { // Ctrl-C
			fmt.Fprintln(stdout, "Stopping  only a part of the demo's data is stored; the next start stores all of it")
			return nil
		}
		if err != nil {
			return fmt.Errorf("store the demo data: %w", err)
		}
		fmt.Fprintf(stdout, "Demo      %d points of tenant %s, and new ones each second, for the token %s\n", n, demoTenant, demoToken)
		config.Known = demoKnown
		demo.Go(func() { drive(ctx, store, log) })
	}
	return serve(ctx, o, config, lis, stdout, log)
}

// serve answers requests until ctx ends, and waits for running ones.
func serve(ctx context.Context, o options, config web.Config, lis net.Listener, stdout io.Writer, log *slog.Logger) error {
	console, err := web.New(config)
	if err != nil {
		return err
	}
	defer console.Close()
	ready := edge.NewReady(config.Store.Ping)
	mux := http.NewServeMux()
	mux.Handle("/", console)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ctx.Err() != nil || ready.Err() != nil {
			http.Error(w, "the store cannot be read", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	var handler http.Handler = mux
	if a, ok := lis.Addr().(*net.TCPAddr); ok && a.IP.IsLoopback() && !o.proxy {
		handler = edge.LocalHost(mux)
	}
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	scheme := "http"
	if o.cert != "" {
		scheme = "https"
	}
	fmt.Fprintf(stdout, "Open      %s://%s; Ctrl-C stops\n", scheme, lis.Addr())
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		fmt.Fprintln(stdout, "Stopping  requests under way may finish; Ctrl-C again ends at once")
		_ = console.Close() // ends the streams, which would never finish
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		stopped <- srv.Shutdown(bounded)
	})
	if o.cert != "" {
		err = srv.ServeTLS(lis, o.cert, o.key)
	} else {
		err = srv.Serve(lis)
	}
	if stop() { // the server ended without Ctrl-C
		return fmt.Errorf("serve: %w", err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("some requests took longer than %v after Ctrl-C and got no response: %w", drain, errors.Join(err, srv.Close()))
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// drain is how long requests in progress may take after Ctrl-C.
const drain = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second Ctrl-C ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintf(os.Stderr, "console: %v\n", err)
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintln(os.Stderr, "console: -help lists the flags")
		os.Exit(2)
	}
	os.Exit(1)
}
