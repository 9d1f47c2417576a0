// Mqtt stores what devices publish to an MQTT broker, and acknowledges each message when it is stored.
//
//	go run ./examples/apps/mqtt -route 'v1/+tenant/+site/+device/telemetry dataset=telemetry key=site,device time=arrival'
//	mosquitto_pub -q 1 -t v1/acme/berlin/t1/telemetry -m '{"temp":21.5}'
//
// README.md says how topics become keys, and what is acknowledged when. In this folder main.go opens and closes
// everything, and flags.go is the command line; package bridge is the service.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/tidemark-go/tidemark/examples/apps/mqtt/bridge"
	"github.com/tidemark-go/tidemark/examples/internal/app"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tsdb"
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer, release func()) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	store, err := o.Open(ctx, "mqtt", log, tsdb.StoreOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	o.bridge.Log = log
	b, err := bridge.New(ctx, store.Store, o.routes, o.bridge)
	if err != nil {
		return err
	}
	store.Print(stdout)
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
		{s.Ignored, "ignored: dead letters, empty messages, or nothing but null"},
		{s.Lost, "lost, of QoS 0"},
		{uint64(s.Waiting), "not acknowledged: the broker sends them again"},
	} {
		if line.n > 0 {
			fmt.Fprintf(w, "%19d %s\n", line.n, line.text)
		}
	}
	if s.Unchanged > 0 {
		fmt.Fprintf(w, "%9d of %d points left out, as nothing has changed\n", s.Unchanged, s.Points)
	}
	inbound.PrintLeftOut(w, s.LeftOut)
}

func main() {
	app.Main("mqtt", func(ctx context.Context, args []string, stop func()) error {
		return run(ctx, args, os.Stdout, os.Stderr, stop)
	})
}
