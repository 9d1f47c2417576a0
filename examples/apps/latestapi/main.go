// Latestapi answers "now" over HTTP: the latest point of one entity, of many, of a whole group, and the history behind
// them by page and by window. The bearer token of a request selects the tenant.
//
//	go run ./examples/apps/latestapi -demo    # made-up data, for the token "demo", in ./tidemark-data
//	curl -H 'Authorization: Bearer demo' 'http://127.0.0.1:8088/v1/weather/latest?site=berlin&device=roof-7'
//
// README.md has a curl command and its response for each query. In this folder main.go opens and closes everything and
// flags.go is the command line; datasets.go has the schemas and reads the store, the handlers are in latest.go,
// group.go, history.go, range.go, windows.go, groups.go, align.go, outages.go, chart.go, live.go and index.go, on what
// server.go, params.go and problem.go do for all of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/tsdb"
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	lis, err := app.Listen("addr", o.Addr)
	if err != nil {
		return err
	}
	defer lis.Close()
	log := slog.New(slog.NewTextHandler(stderr, nil))
	store, err := o.Open(ctx, "latestapi", log, tsdb.StoreOptions{CursorKeys: o.cursorKeys, Cache: o.cache})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := o.Prepare(ctx, store.Store, schemas...); err != nil {
		return err
	}
	store.Print(stdout)
	if o.demo {
		n, err := fill(ctx, store.Store, time.Now())
		if err != nil {
			return fmt.Errorf("store the demo data: %w", err)
		}
		fmt.Fprintf(stdout, "Demo      %d points of tenant %s, for the token %s\n", n, demoTenant, demoToken)
	}
	if o.ownKey {
		fmt.Fprintln(stdout, "Cursors   of this process only; -cursor-keys makes them last, and valid in other replicas")
	}
	return serve(ctx, o, store.Store, lis, stdout, log)
}

// errStopping ends the streams of a server that stops.
var errStopping = errors.New("the server stops")

// serve answers requests until ctx ends, and waits for running ones.
func serve(ctx context.Context, o options, store *tsdb.Store, lis net.Listener, stdout io.Writer, log *slog.Logger) error {
	s, err := newServer(store, &bearer{&o.Tokens}, o.Bounds, log)
	if err != nil {
		return errors.Join(err, lis.Close())
	}
	srv := s.http()
	fmt.Fprintf(stdout, "Listening on http://%s; Ctrl-C stops\n", lis.Addr())
	printLines(stdout, lis.Addr().String(), o.demo)
	return app.Serve(ctx, srv, lis, o.Drain, stdout, func(context.Context) {
		s.stopping.Store(true)
		s.stop(errStopping)
	})
}

func main() {
	app.Main("latestapi", func(ctx context.Context, args []string, _ func()) error {
		return run(ctx, args, os.Stdout, os.Stderr)
	})
}
