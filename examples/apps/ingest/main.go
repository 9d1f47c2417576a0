// Ingest stores InfluxDB line protocol, OTLP metrics and JSON. Telegraf and other clients of InfluxDB write to a
// Tidemark store unchanged, and so do OpenTelemetry's exporters, devices and webhooks. Lines also come from a file, or
// from standard input.
//
//	go run ./examples/apps/ingest -key readings=fleet,name -key diagnostics=fleet,name -token secret=acme
//	go run ./examples/apps/ingest -key readings=fleet,name -tenant acme -file trucks.lp.gz
//
// README.md says what is stored where, how to configure agents, and what the responses mean. In this folder main.go
// opens and closes everything, flags.go is the command line, server.go and version.go speak HTTP, file.go reads files,
// ingest.go goes from lines to points, the files otlp… do all of that for OTLP, and json.go, split.go, messages.go and
// signatures.go for JSON. Package inbound stores the points.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tsdb"
)

// streams are the process's own.
type streams struct {
	in       io.Reader
	out, err io.Writer
	release  func() // lets the next Ctrl-C end the program at once
}

func run(ctx context.Context, args []string, std streams) (err error) {
	o, err := parse(args, std.out)
	if err != nil {
		return err
	}
	var lis, otlp net.Listener
	if o.file == "" { // before opening the store, which takes longer: a port in use is reported at once
		if lis, err = app.Listen("addr", o.Addr); err != nil {
			return err
		}
		defer lis.Close()
	}
	var lines io.Reader
	var closer func()
	if o.file != "" { // before there is a store, or a dataset whose key would have to stay
		if lines, closer, err = openFile(o.file, std); err != nil {
			return err
		}
		defer closer()
	}
	if o.otlpAddr != "" {
		if otlp, err = app.Listen("otlp-grpc-addr", o.otlpAddr); err != nil {
			return err
		}
		defer otlp.Close()
	}
	log := slog.New(slog.NewTextHandler(std.err, nil))
	store, err := o.Open(ctx, "ingest", log, tsdb.StoreOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	shared := tsdb.SchemaOptions{Retention: o.retention}
	schemas, err := o.routes.Schemas(shared)
	if err != nil {
		return err
	}
	ds, err := inbound.NewDatasets(ctx, store.Store, o.keys, inbound.Options{
		Schema: shared, Schemas: schemas, Mapping: o.mapping, Times: o.times, Noun: noun, Log: log,
	})
	if err != nil {
		return err
	}
	w, err := store.NewWriter(tsdb.WriterOptions{DeliveryTimeout: o.Timeout, Journal: tsdb.JournalOptions{Dir: o.journal}})
	if err != nil {
		return err
	}
	in := &ingester{datasets: ds, sink: inbound.Sink{Store: store.Store, Writer: w}, limits: store.Limits, journaled: o.journal != ""}
	store.Print(std.out)
	if in.journaled {
		st := w.Stats().Journal
		fmt.Fprintf(std.out, "Journal   %s, with %d points to deliver and %d dead letters\n", o.journal, st.Points, st.DeadLetters)
	}
	if o.file != "" {
		err = importFile(ctx, o, in, lines, closer, std.out)
	} else {
		err = serve(ctx, o, in, lis, otlp, log, std)
	}
	// Ctrl-C does not stop the delivery of accepted points. Requests have waited for theirs, so few are left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Drain)
	defer cancel()
	if in.journaled {
		err = errors.Join(err, deliver(ctx, w, std.out))
	}
	if cerr := w.Close(ctx); cerr != nil {
		err = errors.Join(err, fmt.Errorf("not all points were delivered: %w", cerr))
	}
	return err
}

// deliver waits until the journal is delivered, and prints the acknowledged points that the store has refused since.
func deliver(ctx context.Context, w *tsdb.Writer, out io.Writer) error {
	_ = w.Flush(ctx) // Close reports what is left in the journal
	n := w.Stats().Journal.DeadLetters
	if n == 0 {
		return nil
	}
	fmt.Fprintf(out, "%9d dead letters in the journal: points that the store refused after they were acknowledged\n", n)
	left := shown
	for l, err := range w.DeadLetters(ctx) {
		if err != nil {
			return fmt.Errorf("read the dead letters: %w", err)
		}
		if left--; left < 0 {
			break
		}
		fmt.Fprintf(out, "          %s of %s, %s at %s: %s\n", l.Dataset, l.Tenant, l.Entity, l.Time.UTC().Format(time.RFC3339Nano), l.Reason)
	}
	return nil
}

// serve answers requests until ctx ends, waits for those in progress, and prints how many lines were stored and
// refused. OTLP over gRPC has a listener of its own, or nil.
func serve(ctx context.Context, o options, in *ingester, lis, otlp net.Listener, log *slog.Logger, std streams) error {
	s := newServer(in, o, log)
	srv := s.http()
	fmt.Fprintf(std.out, "Listening on http://%s; Ctrl-C stops\n", lis.Addr())
	rpc := s.grpc()
	var rpcs sync.WaitGroup
	defer rpcs.Wait()
	defer rpc.Stop()
	if otlp != nil {
		fmt.Fprintf(std.out, "OTLP      gRPC on %s\n", otlp.Addr())
		rpcs.Go(func() {
			if err := rpc.Serve(otlp); err != nil {
				log.Error("OTLP over gRPC ended", "error", err)
			}
		})
	}
	err := app.Serve(ctx, srv, lis, o.Drain, std.out, func(bounded context.Context) {
		std.release()
		rpcs.Go(func() { stopGRPC(bounded, rpc) })
	})
	if ctx.Err() == nil { // the server ended without Ctrl-C
		return err
	}
	rpcs.Wait()
	lines, metrics, messages := s.sum()
	lines.print(std.out)
	if metrics.lines+metrics.blank > 0 {
		metrics.printMetrics(std.out)
	}
	if messages.lines+messages.blank > 0 {
		messages.printMessages(std.out)
		inbound.PrintLeftOut(std.out, in.datasets.LeftOut())
	}
	return err
}

func main() {
	app.Main("ingest", func(ctx context.Context, args []string, stop func()) error {
		return run(ctx, args, streams{os.Stdin, os.Stdout, os.Stderr, stop})
	})
}
