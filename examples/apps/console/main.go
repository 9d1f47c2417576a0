// Console shows a store in a browser: the fleet with its silent entities first, charts of any numbers live and over
// years, several entities side by side. It only reads. The bearer token that a user gives selects the tenant.
//
//	go run ./examples/apps/console -demo       # made-up trucks of the tenant demo, for the token "demo"; then open the printed address
//
// README.md has the pages, the flags and what the server bounds. In this folder main.go opens and closes everything,
// flags.go is the command line, demo.go makes data up. Package web has the pages; a program that ingests can serve them
// itself.
package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tidemark-go/tidemark/examples/apps/console/web"
	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/tsdb"
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	lis, err := app.Listen("addr", o.addr)
	if err != nil {
		return err
	}
	defer lis.Close()
	log := slog.New(slog.NewTextHandler(stderr, nil))
	var figures *metric.ManualReader // for the operator's pages
	var readers []metric.Reader
	if o.operator.Len() > 0 {
		figures = metric.NewManualReader()
		readers = append(readers, figures)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	// The key is of this process: a cursor is only used by the page that got it.
	store, err := o.Open(ctx, "console", log, tsdb.StoreOptions{CursorKeys: [][]byte{key}}, readers...)
	if errors.Is(err, tsdb.ErrLocked) {
		return fmt.Errorf("%w. A program that writes to a folder can serve the pages itself, with package web", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if !o.Cloud {
		if err := store.Ensure(ctx); err != nil { // a new folder has no table yet
			return fmt.Errorf("prepare the folder: %w", err)
		}
	}
	store.Print(stdout)
	config := web.Config{
		Store: store.Store, Tenant: o.tokens.Tenant, Secure: o.proxy, Log: log, Requests: o.requests, Timeout: o.timeout,
		Keys: store.Seen.Keys(), Limits: store.Limits,
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
		n, err := fill(ctx, store.Store, time.Now())
		if ctx.Err() != nil { // Ctrl-C
			fmt.Fprintln(stdout, "Stopping  only a part of the demo's data is stored; the next start stores all of it")
			return nil
		}
		if err != nil {
			return fmt.Errorf("store the demo data: %w", err)
		}
		fmt.Fprintf(stdout, "Demo      %d points of tenant %s, and new ones each second, for the token %s\n", n, demoTenant, demoToken)
		config.Known = demoKnown
		demo.Go(func() { drive(ctx, store.Store, log) })
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
	srv := app.NewServer(handler, 30*time.Second, 0, log) // streams and downloads take long
	scheme := "http"
	if o.pair != nil {
		scheme, srv.TLSConfig = "https", &tls.Config{Certificates: []tls.Certificate{*o.pair}, MinVersion: tls.VersionTLS12}
	}
	fmt.Fprintf(stdout, "Open      %s://%s; Ctrl-C stops\n", scheme, lis.Addr())
	return app.Serve(ctx, srv, lis, drain, stdout, func(context.Context) {
		_ = console.Close() // ends the streams, which would never finish
	})
}

// drain is how long requests in progress may take after Ctrl-C.
const drain = 20 * time.Second

func main() {
	app.Main("console", func(ctx context.Context, args []string, _ func()) error {
		return run(ctx, args, os.Stdout, os.Stderr)
	})
}
