// Mqtt stores what devices publish to an MQTT broker, and acknowledges each message when it is stored.
//
//	go run ./examples/apps/mqtt -route 'v1/+tenant/+site/+device/telemetry dataset=telemetry key=site,device time=arrival'
//	mosquitto_pub -q 1 -t v1/acme/berlin/t1/telemetry -m '{"temp":21.5}'
//
// README.md says how topics become keys, and what is acknowledged when. In this folder main.go opens and closes everything, and
// flags.go is the command line; package bridge is the service.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidemark-go/tidemark/examples/apps/mqtt/bridge"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/observe"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// openStore is the only code that depends on where the points are stored: in a folder, or on Cloud Bigtable.
func openStore(ctx context.Context, o options, limits *limit.Limiter, seen *observe.Outlet) (*tsdb.Store, error) {
	common := tsdb.StoreOptions{RequireTenant: true, Limits: limits, ProfileLimits: o.profiles, Telemetry: seen.Telemetry}
	if !o.cloud {
		store, err := embedded.New(ctx, embedded.Options{StoreOptions: common, Dir: o.dir, DialOptions: seen.DialOptions})
		if errors.Is(err, embedded.ErrLocked) {
			err = fmt.Errorf("%w; stop that process first, or choose another folder with -dir", err)
		}
		return store, err
	}
	config, err := tsdb.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	config.StoreOptions, config.DialOptions = common, seen.DialOptions
	return tsdb.Open(ctx, config)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, release func()) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	seen, err := observe.Open(ctx, "mqtt", o.seen, log)
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
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	o.bridge.Log = log
	b, err := bridge.New(ctx, store, o.routes, o.bridge)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Store     %s\n", o.where())
	seen.Print(stdout)
	go func() {
		select {
		case <-b.Subscribed():
			fmt.Fprintf(stdout, "Storing   what is published to %s; Ctrl-C stops\n", o.bridge.Broker)
		case <-ctx.Done():
		}
	}()
	context.AfterFunc(ctx, func() {
		release()
		fmt.Fprintln(stdout, "Stopping  messages under way may finish; Ctrl-C again ends at once")
	})
	err = b.Run(ctx)
	printStats(stdout, b.Stats())
	return err
}

func printStats(w io.Writer, s bridge.Stats) {
	fmt.Fprintf(w, "%9d messages received, %d of them marked as sent before\n", s.Received, s.Repeated)
	for _, line := range []struct {
		n    uint64
		text string
	}{
		{s.Stored, "stored"},
		{s.Journaled, "journaled"},
		{s.Counted, "counted"},
		{s.DeadLetters, "published as dead letters"},
		{s.Ignored, "ignored: dead letters, or retained messages that were cleared"},
		{s.Lost, "lost, of QoS 0"},
		{uint64(s.Waiting), "not acknowledged: the broker sends them again"},
	} {
		if line.n > 0 {
			fmt.Fprintf(w, "%19d %s\n", line.n, line.text)
		}
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr, stop)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(os.Stderr, "mqtt: %v; -help lists the flags\n", err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "mqtt: %v\n", err)
	os.Exit(1)
}
