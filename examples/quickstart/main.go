// Quickstart samples this machine (CPU, memory, load, disk) as devices of two tenants for a few seconds, and then reads
// back what it wrote: the latest of each device, the last ten of one, a range, and what a tenant sees of the other's.
//
//	go run ./examples/quickstart           # keeps its points in ./tidemark-data; run it twice
//	go run ./examples/quickstart -cloud    # the same on Cloud Bigtable
//
// This file holds the store, the schema and the tenants; sample.go writes, report.go reads, flags.go is the command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// Reading is the value of a point: how much of a device is in use, and its total.
type Reading struct {
	Used  float64 `json:"used"`
	Total float64 `json:"total"`
	Unit  string  `json:"unit"`
}

// d30 is how long readings are kept. Reads stop showing a point the moment it is older; its space is freed later.
var d30 = gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}

// readings is the schema of this program's only dataset: its name, its key fields, how a Reading is encoded, and how long it is
// stored. A schema is independent of stores and tenants.
var readings = tsdb.MustDefine("readings", tsdb.Key("host", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{
	Retention: d30,
})

// customer is a tenant, its repository and its devices.
type customer struct {
	id      tenant.ID
	repo    *tsdb.Repository[Reading]
	devices []device
}

// device is what is measured: an entity of the schema, and how to read it.
type device struct {
	name   string
	entity tsdb.Entity
	read   func(context.Context) (Reading, error)
}

// openStore is the only code that depends on where the points are stored: in a folder, or on Cloud Bigtable.
func openStore(ctx context.Context, o options) (*tsdb.Store, error) {
	if !o.cloud {
		return embedded.Open(ctx, o.dir)
	}
	config, err := tsdb.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	return tsdb.Open(ctx, config)
}

// newCustomers makes two tenants. One name is a prefix of the other, and still neither sees the other's rows. Schema.For does
// no I/O, and the repository that it returns reads and writes only its tenant's rows.
func newCustomers(store *tsdb.Store, host string) []customer {
	acme, acme2 := tenant.MustParse("acme"), tenant.MustParse("acme2")
	return []customer{
		{acme, readings.For(store, acme), []device{
			{"cpu", tsdb.NewEntity(host, "cpu"), readCPU},
			{"memory", tsdb.NewEntity(host, "memory"), readMemory},
		}},
		{acme2, readings.For(store, acme2), []device{
			{"load", tsdb.NewEntity(host, "load"), readLoad},
			{"disk", tsdb.NewEntity(host, "disk"), readDisk},
		}},
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this machine: %w", err)
	}

	store, err := openStore(ctx, o)
	if err != nil {
		if errors.Is(err, embedded.ErrLocked) {
			return fmt.Errorf("open the store: %w; let that end first, or give another folder with -dir", err)
		}
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	// Ensure creates the table, the column family and the catalogue entry of the dataset; where they are there already it
	// compares them with the schema and changes nothing.
	if err := store.Ensure(ctx, readings); err != nil {
		return fmt.Errorf("prepare the table: %w", err)
	}
	customers := newCustomers(store, host)

	fmt.Fprintf(stdout, "Store     %s\n", o.where())
	fmt.Fprintf(stdout, "Dataset   %s, kept in %s\n", readings.Name(), d30)
	if err := printEarlier(ctx, stdout, customers); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Sampling  %s every %v for %v; Ctrl-C ends it sooner", host, o.every, o.length)
	start := time.Now()
	if err := sample(ctx, stdout, customers, o); err != nil {
		return err
	}

	// Ctrl-C ended the sampling, not the program: read what was stored.
	ctx = context.WithoutCancel(ctx)
	for _, print := range []func(context.Context, io.Writer, []customer, time.Time) error{
		printLatest, printLastTen, printRange, printWall,
	} {
		if err := print(ctx, stdout, customers, start); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second Ctrl-C ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(os.Stderr, "quickstart: %v; -help lists the flags\n", err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "quickstart: %v\n", err)
	os.Exit(1)
}
