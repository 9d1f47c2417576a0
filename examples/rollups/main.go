// Rollups keeps a month of temperatures by hour and by day, and views of advertisements by day, and shows that both stay
// correct: the first after a late point and a deletion, the second after a process is killed.
//
//	go run ./examples/rollups                 # keeps its views in ./tidemark-rollups; run it twice
//	go run ./examples/rollups -dir ./tidemark-other
//
// This file is the command line and the store; temperatures.go has the rollup that is derived from points, views.go the one
// that events are added to.
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
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/examples/internal/observe"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// options are the parsed command line.
type options struct {
	dir     string
	journal string // the folder in dir that is the journal of views
	doomed  bool
	seen    observe.Options

	telemetry tsdb.Telemetry // for the stores, which are opened one after another
	dial      []grpc.DialOption
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("rollups", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.dir, "dir", "./tidemark-rollups", "store views and a journal in this `folder`, created if missing")
	flags.BoolVar(&o.doomed, "doomed", false, "only add views, and be killed before all are delivered; the program starts itself with this flag")
	o.seen.Flags(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "Keeps temperatures by hour and day in memory, and views by day in a folder, and shows that both stay correct.")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return o, err
	} else if err != nil {
		return o, usageError{err}
	}
	switch {
	case flags.NArg() > 0:
		return o, usageError{fmt.Errorf("unexpected argument %q", flags.Arg(0))}
	case o.dir == "":
		return o, usageError{errors.New("-dir is empty; want a folder")}
	}
	if err := o.seen.Check(false); err != nil {
		return o, usageError{err}
	}
	o.journal = filepath.Join(o.dir, "journal")
	return o, nil
}

// ahead is how far this program's clock is ahead. A worker takes only marks that are older than the longest write. A real worker
// runs again half a minute later; this program sets its clock forward instead.
var ahead atomic.Int64

func now() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }

// inMemory is withStore for a store in memory, whose clock may be set forward. A store in a folder would not trust that clock.
func inMemory(ctx context.Context, o options, do func(*tsdb.Store, tenant.ID) error) error {
	return with(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{Clock: now, Telemetry: o.telemetry}, DialOptions: o.dial}, do)
}

// withStore runs do with the tenant's store, and closes it.
func withStore(ctx context.Context, o options, do func(*tsdb.Store, tenant.ID) error) error {
	return with(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{Telemetry: o.telemetry}, Dir: filepath.Join(o.dir, "store"), DialOptions: o.dial}, do)
}

func with(ctx context.Context, opts embedded.Options, do func(*tsdb.Store, tenant.ID) error) (err error) {
	store, err := embedded.New(ctx, opts)
	if errors.Is(err, embedded.ErrLocked) {
		return fmt.Errorf("open the store: %w; let that end first, or give another folder with -dir", err)
	}
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	// Ensure also creates the families of the rollups, and refuses an ordinary family where an aggregate is needed.
	if err := store.Ensure(ctx, temperatures, views); err != nil {
		return fmt.Errorf("prepare the table: %w", err)
	}
	return do(store, tenant.MustParse("acme"))
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	seen, err := observe.Open(ctx, "rollups", o.seen, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	defer seen.Close()
	seen.Print(stdout)
	o.telemetry, o.dial = seen.Telemetry, seen.DialOptions
	if o.doomed {
		return withStore(ctx, o, func(store *tsdb.Store, id tenant.ID) error { return addAndDie(ctx, store, id, o) })
	}
	if err := inMemory(ctx, o, func(store *tsdb.Store, id tenant.ID) error { return month(ctx, stdout, store, id) }); err != nil {
		return err
	}
	return countViews(ctx, stdout, o)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second Ctrl-C ends the program at once
	err := run(ctx, os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintf(os.Stderr, "rollups: %v\n", err)
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintln(os.Stderr, "-help lists the flags")
		os.Exit(2)
	}
	os.Exit(1)
}
