// Promapi serves the datasets of a store to Grafana and to Prometheus: PromQL queries, remote write and remote read.
// The credentials of a request select the tenant.
//
//	go run . -demo       # in this folder, with GOWORK=off; made-up data for the token "demo"
//	curl -H 'Authorization: Bearer demo' 'http://127.0.0.1:9099/api/v1/query?query=trucks_speed_kmh'
//
// README.md has a command for each use. main.go opens and closes everything and flags.go is the command line. Requests
// come in through auth.go and server.go. The query API is in query.go, lists.go and exemplars.go, and reads through
// querier.go: the datasets of other programs with catalogue.go, mapped.go, fields.go and rollups.go, the series of
// remote write with promseries.go. Remote write is in write.go and writebatch.go, remote read in read.go; sample.go and
// seriesname.go say how their series are stored.
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
	store, err := o.Open(ctx, "promapi", log, tsdb.StoreOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	schema, err := defineProm(o.keep)
	if err != nil {
		return err
	}
	if err := o.Prepare(ctx, store.Store, schema); err != nil {
		return err
	}
	store.Print(stdout)
	writer, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: o.journal}})
	if err != nil {
		return fmt.Errorf("open the writer: %w", err)
	}
	defer func() { // what was acknowledged is stored, or stays in the journal
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Drain)
		defer cancel()
		err = errors.Join(err, writer.Close(bounded))
	}()
	if o.demo {
		n, err := fill(ctx, store.Store, time.Now())
		if err != nil {
			return fmt.Errorf("store the demo data: %w", err)
		}
		stop, err := rollUp(ctx, store.Store, log)
		if err != nil {
			return err
		}
		defer stop()
		fmt.Fprintf(stdout, "Demo      %d points of tenant %s, for the token %s\n", n, demoTenant, demoToken)
	}
	shown, err := openCatalogue(ctx, store.Store, o.messages, log, store.Seen.Telemetry.MeterProvider)
	if err != nil {
		return fmt.Errorf("map the datasets to metrics: %w", err)
	}
	s, err := newServer(store.Store, writer, schema, resolver(&tokens{&o.Tokens}, o.behindProxy), o.limits, log, newMappedSource(shown))
	if err != nil {
		return err
	}
	return serve(ctx, o, s, lis, stdout)
}

// serve answers requests until ctx ends, and waits for running ones.
func serve(ctx context.Context, o options, s *server, lis net.Listener, stdout io.Writer) error {
	srv := s.http()
	fmt.Fprintf(stdout, "Listening on http://%s; Ctrl-C stops\n", lis.Addr())
	return app.Serve(ctx, srv, lis, o.Drain, stdout, nil)
}

func main() {
	app.Main("promapi", func(ctx context.Context, args []string, _ func()) error {
		return run(ctx, args, os.Stdout, os.Stderr)
	})
}
