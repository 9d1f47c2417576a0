// Package tour runs the tour of Tidemark: simulated vehicles publish by MQTT, a bridge stores what they send, rollups
// follow, and a console shows it live.
//
// This file opens, starts and stops everything. vehicle.go and schedule.go simulate, publish.go sends, mosquitto.go
// starts the broker, direct.go stores without one, dataset.go says what is stored, backfill.go stores the hours before
// the first start.
package tour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/apps/console/web"
	"github.com/tidemark-go/tidemark/examples/apps/mqtt/bridge"
	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/heatmap"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
)

// Streams are the process's own.
type Streams struct {
	Out, Err io.Writer
	// Release lets the next Ctrl-C end the program at once.
	Release func()
}

// tour is everything that runs.
type tour struct {
	options
	std Streams
	log *slog.Logger

	store   *tsdb.Store
	keys    *heatmap.Recorder
	metrics *metric.ManualReader
	limits  *limit.Limiter
	fleet   *fleet
}

// storeFolder is where the store is below the folder of a tour.
const storeFolder = "store"

// Run runs the tour until ctx ends, and prints where to look. With -help it prints the help and returns flag.ErrHelp. A
// *UsageError is a mistake on the command line.
func Run(ctx context.Context, args []string, std Streams) (err error) {
	o, err := parse(args, std.Out)
	if err != nil {
		return err
	}
	lis, err := net.Listen("tcp", o.addr) // before opening the store, which takes longer: a port in use is reported at once
	if err != nil {
		return fmt.Errorf("cannot listen on %s; choose another address with -addr, such as 127.0.0.1:0: %w", o.addr, err)
	}
	defer lis.Close()
	t := &tour{options: o, std: std, log: slog.New(slog.NewTextHandler(std.Err, &slog.HandlerOptions{Level: slog.LevelWarn})), fleet: newFleet(o.seed, o.vehicles, o.every)}
	if err := t.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.store.Close()) }()
	fmt.Fprintf(std.Out, "Store     the folder %s, embedded in this process\n", filepath.Join(o.dir, storeFolder))
	if o.vehicles > quickly && o.history > 0 {
		fmt.Fprintf(std.Out, "History   is stored now for %d vehicles, which takes some seconds\n", o.vehicles)
	}
	began := time.Now()
	points, from, err := backfill(ctx, t.store, t.fleet, o.seed, o.history, began)
	if ctx.Err() != nil { // Ctrl-C
		fmt.Fprintln(std.Out, "Stopping  the next start continues")
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(std.Out, "History   %d points since %s, stored in %v\n", points, from.Local().Format(time.DateTime), time.Since(began).Round(100*time.Millisecond))
	return t.serve(ctx, lis)
}

// quickly is for how many vehicles the history is stored in about a second.
const quickly = 1000

// open opens the store with everything that the console shows of it.
func (t *tour) open(ctx context.Context) (err error) {
	if t.keys, err = heatmap.NewRecorder(heatmap.Options{}); err != nil {
		return err
	}
	// Limits that no vehicle reaches, so that the console has some to show.
	if t.limits, err = limit.New(limit.Table{Defaults: limit.Limits{Entities: 2 * maxVehicles, PointBytes: 4096, ConcurrentReads: 100}}, limit.Options{}); err != nil {
		return err
	}
	t.metrics = metric.NewManualReader()
	t.store, err = embedded.New(ctx, embedded.Options{
		StoreOptions: tsdb.StoreOptions{
			Limits:    t.limits,
			Telemetry: tsdb.Telemetry{MeterProvider: metric.NewMeterProvider(metric.WithReader(t.metrics)), Tenants: 100, Logger: t.log},
		},
		Dir: filepath.Join(t.dir, storeFolder), DialOptions: t.keys.DialOptions(),
	})
	if errors.Is(err, tsdb.ErrLocked) {
		return fmt.Errorf("open the store: %w; stop the tour that uses it, or choose another folder with -dir", err)
	}
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	if err := t.store.Ensure(ctx, telemetry); err != nil {
		return errors.Join(fmt.Errorf("prepare the table: %w", err), t.store.Close())
	}
	return nil
}

// serve runs everything until ctx ends, and stops it in the order of the data: the vehicles, the bridge, the rollups,
// the console, the broker.
func (t *tour) serve(ctx context.Context, lis net.Listener) (err error) {
	broker, err := t.startBroker(ctx)
	if err != nil {
		return err
	}
	if broker != nil {
		defer func() { err = errors.Join(err, broker.Close()) }()
	}

	tokens, err := openTokens(t.dir)
	if err != nil {
		return err
	}
	console, err := web.New(web.Config{
		Store: t.store, Tenant: tokens.Tenant, Operator: tokens.Operator, Known: []web.Known{web.Knows(telemetry, shown()...)},
		Metrics: t.metrics, Keys: t.keys, Limits: t.limits, Log: t.log, Links: true, // only this program's user knows its tokens
		Sessions: web.SessionFile{Name: filepath.Join(t.dir, "console-sessions.json"), Tokens: tokens.digest()},
	})
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: edge.LocalHost(console), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(t.log.Handler(), slog.LevelWarn)}
	var parts sync.WaitGroup
	defer parts.Wait()
	failed := make(chan error, 4)
	start := func(what string, run func() error) {
		parts.Go(func() {
			if err := run(); err != nil {
				failed <- fmt.Errorf("%s: %w", what, err)
			}
		})
	}
	start("serve the console", func() error {
		if err := srv.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	defer func() { // pages that are open end with the console's streams
		_ = console.Close()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := srv.Shutdown(bounded); err != nil {
			_ = srv.Close()
		}
	}()

	worker, err := rollup.NewWorker(t.store, rollup.WorkerOptions{Every: 10 * time.Second, OnError: func(err error) { t.log.Warn("a rollup waits for the next pass", "error", err) }}, telemetry)
	if err != nil {
		return err
	}
	stopWorker := t.stage(ctx, start, "compute rollups", func(ctx context.Context) error {
		if err := worker.Run(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
	defer stopWorker()

	routes, err := inbound.ParseRoutes(strings.NewReader(route))
	if err != nil {
		return err
	}
	vehicles := &publisher{fleet: t.fleet, now: time.Now, log: t.log}
	journal := tsdb.JournalOptions{Dir: filepath.Join(t.dir, "journal")}
	var stored func() uint64
	var stopIntake func()
	if broker == nil {
		in, err := newDirect(ctx, t.store, routes, journal, t.log)
		if err != nil {
			return err
		}
		vehicles.publish, stored = in.publish, in.stored.Load
		stopIntake = t.stage(ctx, start, "store", in.run)
		defer stopIntake()
	} else {
		bridged, err := bridge.New(ctx, t.store, routes, bridge.Config{
			Broker: broker.URL(), ClientID: "tidemark-fleet-bridge", Schemas: []*tsdb.Schema[codec.Record]{telemetry}, Journal: journal, Log: t.log,
		})
		if err != nil {
			return err
		}
		stored = func() uint64 {
			s := bridged.Stats()
			return s.Stored + s.Journaled
		}
		stopIntake = t.stage(ctx, start, "bridge", bridged.Run)
		defer stopIntake()
		select {
		case <-bridged.Subscribed():
		case err := <-failed:
			return err
		case <-ctx.Done():
			return nil
		}
		disconnect, err := vehicles.overMQTT(ctx, broker.URL())
		if err != nil {
			return err
		}
		defer disconnect()
	}
	stopVehicles := t.stage(ctx, start, "vehicles", func(ctx context.Context) error { return vehicles.run(ctx, time.Now()) })
	defer stopVehicles()

	fmt.Fprintf(t.std.Out, "Vehicles  %d, each sends every %v\n\n", len(t.fleet.vehicles), t.fleet.every().Round(time.Millisecond))
	t.invite(lis.Addr().String(), tokens)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	t.std.Release()
	fmt.Fprintln(t.std.Out, "\nStopping  Ctrl-C again ends at once")
	stopVehicles()
	for until := time.Now().Add(leftover); stored() < vehicles.published.Load() && time.Now().Before(until); { // what the broker has accepted
		time.Sleep(20 * time.Millisecond)
	}
	stopIntake()
	fmt.Fprintf(t.std.Out, "Stored    %d messages of the vehicles, %d in the store or its journal\n", vehicles.published.Load(), stored())
	return nil
}

// leftover is how long the bridge may take for what the broker holds when the vehicles have stopped.
const leftover = 5 * time.Second

// stage starts a part with a context that outlives ctx, and returns the function that ends it and waits for its end.
func (t *tour) stage(ctx context.Context, start func(string, func() error), what string, run func(context.Context) error) (stop func()) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	start(what, func() error {
		defer close(done)
		return run(own)
	})
	return func() {
		cancel()
		<-done
	}
}

// startBroker starts the broker of -broker. It returns nil if there is none.
func (t *tour) startBroker(ctx context.Context) (*mosquitto, error) {
	path := ""
	if t.broker != brokerNone {
		path = findMosquitto()
	}
	if path == "" && t.broker == brokerMosquitto {
		return nil, errors.New("mosquitto is not installed; -broker none needs no other program")
	}
	if path != "" {
		m, err := startMosquitto(ctx, path)
		if err == nil {
			fmt.Fprintf(t.std.Out, "Broker    mosquitto at %s\n", m.URL())
			return m, nil
		}
		if t.broker == brokerMosquitto || ctx.Err() != nil {
			return nil, err
		}
		fmt.Fprintf(t.std.Out, "Broker    not mosquitto: %v\n", err)
	}
	fmt.Fprintln(t.std.Out, "Broker    none: messages are stored in this process")
	return nil, nil
}

// invite prints where to look. The token is behind the #: browsers do not send that part, so it appears in no log.
func (t *tour) invite(addr string, tk *tokens) {
	link := func(token string) string { return "http://" + addr + "/login#token=" + token }
	fmt.Fprintf(t.std.Out, "Open the console in a browser of this machine; each link logs in:\n\n")
	fmt.Fprintf(t.std.Out, "  %-10s%s\n", "operator", link(tk.operator))
	for i, c := range companies {
		fmt.Fprintf(t.std.Out, "  %-10s%s\n", c.id, link(tk.tenants[i]))
	}
	fmt.Fprintf(t.std.Out, "\nThe operator sees everything; %s and %s see their own vehicles. Ctrl-C stops, and the next start continues.\n", companies[0].id, companies[1].id)
}
