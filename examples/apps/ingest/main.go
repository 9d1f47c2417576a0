// Ingest stores InfluxDB line protocol and OTLP metrics. Telegraf and other clients of InfluxDB write to a Tidemark store unchanged,
// and so do OpenTelemetry's exporters. Lines also come from a file, or from standard input.
//
//	go run ./examples/apps/ingest -key readings=fleet,name -key diagnostics=fleet,name -token secret=acme
//	go run ./examples/apps/ingest -key readings=fleet,name -tenant acme -file trucks.lp.gz
//
// README.md says what is stored where, how to configure agents, and what the responses mean. In this folder main.go opens and closes
// everything, flags.go is the command line, server.go and version.go speak HTTP, file.go reads files, ingest.go goes from
// lines to points, and the files otlp… do all of that for OTLP. Package inbound stores the points.
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
	"sync"
	"syscall"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/examples/internal/observe"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// streams are the process's own.
type streams struct {
	in       io.Reader
	out, err io.Writer
	release  func() // lets the next Ctrl-C end the program at once
}

// openStore is the only code that depends on where the points are stored: in a folder, or on Cloud Bigtable.
func openStore(ctx context.Context, o options, limits *limit.Limiter, seen *observe.Outlet) (*tsdb.Store, error) {
	if !o.cloud {
		if o.dir == "" { // New would open a store in memory
			return nil, errors.New("-dir is empty")
		}
		return embedded.New(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{RequireTenant: true, Limits: limits, ProfileLimits: o.profiles, Telemetry: seen.Telemetry}, Dir: o.dir, DialOptions: seen.DialOptions})
	}
	config, err := tsdb.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	config.RequireTenant = true // each request must act as the tenant of its token
	config.Limits, config.ProfileLimits = limits, o.profiles
	config.Telemetry, config.DialOptions = seen.Telemetry, seen.DialOptions
	return tsdb.Open(ctx, config)
}

func run(ctx context.Context, args []string, std streams) (err error) {
	o, err := parse(args, std.out)
	if err != nil {
		return err
	}
	var lis, otlp net.Listener
	if o.file == "" { // before opening the store, which takes longer: a port in use is reported at once
		if lis, err = listen("addr", o.addr); err != nil {
			return err
		}
		defer lis.Close()
	}
	if o.otlpAddr != "" {
		if otlp, err = listen("otlp-grpc-addr", o.otlpAddr); err != nil {
			return err
		}
		defer otlp.Close()
	}
	log := slog.New(slog.NewTextHandler(std.err, nil))
	seen, err := observe.Open(ctx, "ingest", o.seen, log)
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
			return fmt.Errorf("open the store: %w; stop that process first, or choose another folder with -dir", err)
		}
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	ds, err := inbound.NewDatasets(ctx, store, o.keys, inbound.Options{
		Schema: tsdb.SchemaOptions{Retention: o.retention}, Times: o.times, Noun: noun, Log: log,
	})
	if err != nil {
		return err
	}
	w, err := store.NewWriter(tsdb.WriterOptions{DeliveryTimeout: o.limits.timeout, Journal: tsdb.JournalOptions{Dir: o.journal}})
	if err != nil {
		return err
	}
	in := &ingester{datasets: ds, sink: inbound.Sink{Store: store, Writer: w}, limits: table.Limiter, journaled: o.journal != ""}
	fmt.Fprintf(std.out, "Store     %s\n", o.where())
	seen.Print(std.out)
	if in.journaled {
		st := w.Stats().Journal
		fmt.Fprintf(std.out, "Journal   %s, with %d points to deliver and %d dead letters\n", o.journal, st.Points, st.DeadLetters)
	}
	if o.file != "" {
		err = importFile(ctx, o, in, std)
	} else {
		err = serve(ctx, o, in, lis, otlp, log, std)
	}
	// Ctrl-C does not stop the delivery of accepted points. Requests have waited for theirs, so few are left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain)
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

func listen(flag, addr string) (net.Listener, error) {
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s; choose another address with -%s: %w", addr, flag, err)
	}
	return lis, nil
}

// serve answers requests until ctx ends, waits for those in progress, and prints how many lines were stored and refused. OTLP over
// gRPC has a listener of its own, or nil.
func serve(ctx context.Context, o options, in *ingester, lis, otlp net.Listener, log *slog.Logger, std streams) error {
	s := newServer(in, o.auth, o.limits, o.mapping, log)
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
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		std.release()
		fmt.Fprintln(std.out, "Stopping  requests under way may finish; Ctrl-C again ends at once")
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain)
		defer cancel()
		rpcs.Go(func() { stopGRPC(bounded, rpc) })
		stopped <- srv.Shutdown(bounded)
	})
	err := srv.Serve(lis)
	if stop() { // the server ended without Ctrl-C
		return fmt.Errorf("serve: %w", err)
	}
	err = <-stopped
	rpcs.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("some requests took longer than %v after Ctrl-C and got no response: %w", o.drain, errors.Join(err, srv.Close()))
	}
	lines, metrics := s.sum()
	lines.print(std.out)
	if o.mapping != nil {
		metrics.printMetrics(std.out)
	}
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr, stop})
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(os.Stderr, "ingest: %v; -help lists the flags\n", err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "ingest: %v\n", err)
	os.Exit(1)
}
