// Trucks answers the questions of dispatchers of fleets of trucks: where is this truck, where are the trucks of this fleet,
// which are low on fuel, which have stood still for ten minutes, how loaded are the fleets. It stores an hour of made-up data
// in memory, or a file in InfluxDB line protocol, and prints tables.
//
//	go run ./examples/trucks
//	go run ./examples/trucks -file trucks.lp.gz -truck truck_17 -fleet West
//
// "Now" is the newest time in the data. In this folder schemas.go defines the datasets, which decide what each question
// costs; load.go stores it, questions.go answers, report.go prints, sample.go makes the data up.
package main

import (
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// options are the parsed command line.
type options struct {
	file         string
	truck, fleet string
	fuel, speed  float64
	span         time.Duration
}

// usageError is a mistake on the command line.
type usageError struct{ error }

// parse reads the command line. With -help it prints the help and returns flag.ErrHelp; other errors are usageErrors.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("trucks", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.file, "file", "", "the `file` with the data in line protocol, plain or, as .gz, packed; without it some is made up")
	flags.StringVar(&o.truck, "truck", "truck_1", "the `name` of the truck to look for")
	flags.StringVar(&o.fleet, "fleet", "North", "the `name` of the fleet to look for")
	flags.Float64Var(&o.fuel, "fuel", 0.1, "a truck is low on fuel with less than this `share` of its tank")
	flags.Float64Var(&o.speed, "speed", 1, "a truck stands still with less than this mean `velocity`")
	flags.DurationVar(&o.span, "span", 10*time.Minute, "over how long that is")

	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "Answers questions about fleets of trucks.")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, usageError{err}
	}
	switch {
	case flags.NArg() > 0:
		return o, usageError{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	case o.truck == "" || o.fleet == "":
		return o, usageError{errors.New("-truck or -fleet is empty; want a name")}
	case !(o.fuel >= 0 && o.speed >= 0): // which NaN is not
		return o, usageError{errors.New("-fuel or -speed is below 0; want 0 or more")}
	case o.span <= 0:
		return o, usageError{fmt.Errorf("-span is %v; want above 0", o.span)}
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	in, name, err := open(o.file)
	if err != nil {
		return err
	}
	defer in.Close()
	store, err := embedded.OpenMemory(ctx) // or embedded.Open, or tsdb.Open; the rest does not change
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Ensure(ctx, schemas...); err != nil {
		return fmt.Errorf("prepare the table: %w", err)
	}
	d, err := newData(store, tenant.MustParse("acme"))
	if err != nil {
		return err
	}
	begin := time.Now()
	sum, err := d.load(ctx, in)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	sum.print(stdout, name, time.Since(begin))
	if sum.points == 0 {
		return fmt.Errorf("read %s: there is nothing in it about a truck", name)
	}
	for _, answer := range []func(context.Context, io.Writer, *data, options, time.Time) error{
		printTruck, printFleet, printFuel, printStanding, printLoads,
	} {
		if err := answer(ctx, stdout, d, o, sum.now); err != nil {
			return err
		}
	}
	return nil
}

// open returns the lines of a file, or made-up ones.
func open(file string) (r io.ReadCloser, name string, err error) {
	if file == "" {
		return io.NopCloser(strings.NewReader(sample())), "made-up data", nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, "", err
	}
	if !strings.HasSuffix(file, ".gz") {
		return f, file, nil
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("%s: %w", file, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, file, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintf(os.Stderr, "trucks: %v; -help lists the flags\n", err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "trucks: %v\n", err)
	os.Exit(1)
}
