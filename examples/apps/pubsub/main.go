// Pubsub stores the messages of a Google Cloud Pub/Sub subscription, and acknowledges each when it is stored.
//
//	go run ./examples/apps/pubsub -subscription projects/p/subscriptions/telemetry -dead-letters projects/p/topics/poison \
//	    -attributes device -route 'tenant=acme dataset=telemetry key=device time=ts,ms'
//
// README.md says how messages become points, and what is acknowledged when. In this folder main.go opens and closes
// everything, flags.go is the command line, subscriber.go stores messages, and deadletters.go publishes those that can
// never be stored.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"cloud.google.com/go/pubsub/v2"

	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/tsdb"
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer, release func()) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	store, err := o.Open(ctx, "pubsub", log, tsdb.StoreOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	client, err := pubsub.NewClient(ctx, o.project)
	if err != nil {
		return fmt.Errorf("connect to Pub/Sub: %w", err)
	}
	defer client.Close()
	s, err := newSubscriber(ctx, store.Store, client, o, log)
	if err != nil {
		return err
	}
	store.Print(stdout)
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
	app.Main("pubsub", func(ctx context.Context, args []string, stop func()) error {
		return run(ctx, args, os.Stdout, os.Stderr, stop)
	})
}
