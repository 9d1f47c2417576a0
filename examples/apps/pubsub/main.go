// Pubsub stores the messages of a Google Cloud Pub/Sub subscription, and acknowledges each when it is stored.
//
//	go run ./examples/apps/pubsub -subscription projects/p/subscriptions/telemetry -dead-letters projects/p/topics/poison \
//	    -attributes device -route 'tenant=acme dataset=telemetry key=device time=ts,ms'
//
// README.md says how messages become points, and what is acknowledged when. In this folder main.go opens and closes everything,
// flags.go is the command line, subscriber.go stores messages, and deadletters.go publishes those that can never be stored.
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

	"cloud.google.com/go/pubsub/v2"

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
	seen, err := observe.Open(ctx, "pubsub", o.seen, log)
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
	client, err := pubsub.NewClient(ctx, o.project)
	if err != nil {
		return fmt.Errorf("connect to Pub/Sub: %w", err)
	}
	defer client.Close()
	s, err := newSubscriber(ctx, store, client, o, log)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Store     %s\n", o.where())
	seen.Print(stdout)
	fmt.Fprintf(stdout, "Storing   the messages of %s; Ctrl-C stops\n", o.subscription)
	context.AfterFunc(ctx, func() {
		release()
		fmt.Fprintln(stdout, "Stopping  messages under way may finish; Ctrl-C again ends at once")
	})
	err = s.run(ctx)
	s.print(stdout)
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr, stop)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(os.Stderr, "pubsub: %v; -help lists the flags\n", err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "pubsub: %v\n", err)
	os.Exit(1)
}
