package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/observe"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// Place is where the points are stored, which limits their tenants have, and where the telemetry goes.
type Place struct {
	Cloud    bool
	Dir      string
	Ensure   bool   // prepare the table, and not only compare it
	Limits   string // a file
	Profiles bool   // take limits from profiles, too
	Observe  observe.Options
	// Attach uses a folder that another program has open through that program. Set it in programs that look at data; in
	// those that take data in, two on one folder are a mistake.
	Attach bool
}

// Flags adds the flags of a Place. Flag -allow-remote must have been added before.
func (p *Place) Flags(flags *flag.FlagSet) {
	flags.BoolVar(&p.Cloud, "cloud", false, "the points are on Cloud Bigtable: in the table that TIDEMARK_PROJECT, TIDEMARK_INSTANCE and TIDEMARK_TABLE name")
	flags.StringVar(&p.Dir, "dir", "./tidemark-data", "the points are in this `folder`, created if missing")
	flags.StringVar(&p.Limits, "limits", "", "apply the tenants' limits in this `file`, JSON as package tenant/limit describes it; changes are applied while running")
	flags.BoolVar(&p.Profiles, "profile-limits", false, "also apply the limits in the tenants' profiles, which \"tidectl tenants onboard\" stores; -limits gives the defaults, and its overrides come first")
	p.Observe.Flags(flags)
}

// EnsureFlag adds the flag of apps that prepare a table on Cloud Bigtable only if they are asked to.
func (p *Place) EnsureFlag(flags *flag.FlagSet) {
	flags.BoolVar(&p.Ensure, "ensure", false, "with -cloud: create missing tables, families and catalogue entries, which needs admin rights; in a folder this is always done")
}

func (p *Place) checkEnsure(given map[string]bool) error {
	if given["ensure"] && !p.Cloud {
		return errors.New("-ensure is for -cloud; a folder is always prepared")
	}
	p.Ensure = p.Ensure || !p.Cloud
	return nil
}

// Check checks the flags. Remote allows a port for metrics that other machines reach.
func (p *Place) Check(given map[string]bool, remote bool) error {
	switch {
	case p.Cloud && given["dir"]:
		return errors.New("-cloud and -dir exclude each other")
	case p.Dir == "": // would be a store in memory
		return errors.New("-dir is empty; want a folder")
	}
	if err := p.checkEnsure(given); err != nil {
		return err
	}
	return p.Observe.Check(remote)
}

// Prepare makes the table fit the schemas, or only compares them, so that a server on Cloud Bigtable needs no admin
// rights.
func (p *Place) Prepare(ctx context.Context, store *tsdb.Store, schemas ...tsdb.Dataset) error {
	if !p.Ensure {
		if err := store.Verify(ctx, schemas...); err != nil {
			return fmt.Errorf("compare the table with the schemas, which -ensure would create: %w", err)
		}
		return nil
	}
	if err := store.Ensure(ctx, schemas...); err != nil {
		return fmt.Errorf("prepare the table: %w", err)
	}
	return nil
}

// String says where the points are.
func (p *Place) String() string {
	emulator := os.Getenv("BIGTABLE_EMULATOR_HOST")
	switch {
	case !p.Cloud:
		return "the folder " + p.Dir
	case emulator != "":
		return "the Bigtable emulator at " + emulator
	}
	return "Cloud Bigtable"
}

// Opened is an open store with its limits and its telemetry.
type Opened struct {
	*tsdb.Store
	Limits *limit.Limiter // nil without a file of limits
	Seen   *observe.Outlet
	place  *Place
}

// Open opens the telemetry, the limits and the store of an app. Each call of the store needs a tenant in its context.
// Readers are the app's own readers of metrics. The file of limits is watched until ctx ends.
func (p *Place) Open(ctx context.Context, name string, log *slog.Logger, opts tsdb.StoreOptions, readers ...metric.Reader) (*Opened, error) {
	seen, err := observe.Open(ctx, name, p.Observe, log, readers...)
	if err != nil {
		return nil, err
	}
	table, err := edge.OpenLimits(p.Limits)
	if err != nil {
		seen.Close()
		return nil, fmt.Errorf("-limits: %w", err)
	}
	opts.RequireTenant, opts.Limits, opts.ProfileLimits, opts.Telemetry = true, table.Limiter, p.Profiles, seen.Telemetry
	store, err := p.openStore(ctx, opts, seen)
	if err != nil {
		seen.Close()
		return nil, fmt.Errorf("open the store: %w", err)
	}
	go table.Watch(ctx, log)
	return &Opened{Store: store, Limits: table.Limiter, Seen: seen, place: p}, nil
}

func (p *Place) openStore(ctx context.Context, opts tsdb.StoreOptions, seen *observe.Outlet) (*tsdb.Store, error) {
	if !p.Cloud {
		store, err := embedded.New(ctx, embedded.Options{StoreOptions: opts, Dir: p.Dir, DialOptions: seen.DialOptions, Attach: p.Attach})
		if errors.Is(err, tsdb.ErrLocked) {
			err = fmt.Errorf("%w; stop that process first, or choose another folder with -dir", err)
		}
		return store, err
	}
	config, err := tsdb.ConfigFromEnv()
	if err != nil {
		return nil, err
	}
	if opts.CursorKeys == nil {
		opts.CursorKeys = config.CursorKeys // from the environment
	}
	config.StoreOptions, config.DialOptions = opts, seen.DialOptions
	return tsdb.Open(ctx, config)
}

// Print prints where the points are, and where the telemetry goes.
func (o *Opened) Print(stdout io.Writer) {
	fmt.Fprintf(stdout, "Store     %s\n", o.place)
	o.Seen.Print(stdout)
}

// Close closes the store, then the telemetry.
func (o *Opened) Close() error {
	err := o.Store.Close()
	o.Seen.Close()
	return err
}
