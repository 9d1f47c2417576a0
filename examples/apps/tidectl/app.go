package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// app is what all commands share.
type app struct {
	std                                            streams
	dir, project, instance, table                  string
	profile, conditionalProfile, bulkProfile, form string
	descriptors                                    string
	messages                                       []string
	progress                                       bool
	attached                                       bool // another program has the folder open
}

// run runs one command line.
func run(ctx context.Context, args []string, std streams) error {
	a := &app{std: std}
	root := &cli.Command{
		Name:  "tidectl",
		Usage: "operate a Tidemark store",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Usage: "the `folder` of an embedded store", Destination: &a.dir},
			&cli.StringFlag{Name: "project", Usage: "the Google Cloud `project`", Destination: &a.project, Sources: cli.EnvVars("TIDEMARK_PROJECT")},
			&cli.StringFlag{Name: "instance", Usage: "the Bigtable `instance`", Destination: &a.instance, Sources: cli.EnvVars("TIDEMARK_INSTANCE")},
			&cli.StringFlag{Name: "table", Usage: "the `table`", Destination: &a.table, Sources: cli.EnvVars("TIDEMARK_TABLE")},
			&cli.StringFlag{Name: "app-profile", Usage: "the app `profile`", Destination: &a.profile, Sources: cli.EnvVars("TIDEMARK_APP_PROFILE")},
			&cli.StringFlag{
				Name: "conditional-app-profile", Usage: "the app `profile` for conditional writes", Destination: &a.conditionalProfile,
				Sources: cli.EnvVars("TIDEMARK_CONDITIONAL_APP_PROFILE"),
			},
			&cli.StringFlag{
				Name: "bulk-app-profile", Usage: "the app `profile` for the rows of exports and the samples of forecasts and of keys", Destination: &a.bulkProfile,
				Sources: cli.EnvVars("TIDEMARK_BULK_APP_PROFILE"),
			},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "text or json; csv for the queries; parquet for range", Value: "text", Destination: &a.form},
		},
		Commands:       []*cli.Command{a.tenants(), a.datasets(), a.retention(), a.advise(), a.heatmap(), a.lab(), a.adopt(), a.conform(), a.get(), a.latest(), a.rangeUnder(), a.windows(), a.groups(), a.fields(), a.outages(), a.silent(), a.watch(), a.put(), a.delete(), a.importFiles(), a.backup(), a.verify(), a.restore()}, // the other capabilities add theirs here
		Reader:         std.in,
		Writer:         std.out,
		ErrWriter:      io.Discard, // main prints the error once
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		// Hidden by default; scripts for bash, zsh, fish and PowerShell.
		ConfigureShellCompletionCommand: func(c *cli.Command) { c.Hidden = false },
		HideHelpCommand:                 true,
	}
	root.Flags = append(append(root.Flags, a.messageFlags()...),
		&cli.BoolFlag{Name: "progress", Usage: "show progress on standard error, every 5 seconds, where it is no terminal", Destination: &a.progress})
	root.Version, root.EnableShellCompletion = version(), true
	strict(root)
	a.completes(root)
	return root.Run(ctx, append([]string{"tidectl"}, args...))
}

// strict makes mistakes on the command line errors of their own kind, for a command and all below it.
func strict(c *cli.Command) {
	c.OnUsageError = func(_ context.Context, _ *cli.Command, err error, _ bool) error { return usageError{err} }
	if c.Action == nil {
		c.Action = func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				var names []string
				for _, sub := range c.Commands {
					names = append(names, sub.Name)
				}
				return usageError{fmt.Errorf("unknown command %q%s; --help lists the commands", c.Args().First(), didYouMean(c.Args().First(), names))}
			}
			return cli.ShowSubcommandHelp(c)
		}
	}
	for _, sub := range c.Commands {
		strict(sub)
	}
}

// storeMarker is in every folder that holds a store.
const storeMarker = "TIDEMARK"

// open opens the store that the flags name. An embedded store must exist, unless create is set, which creates it and
// its folder.
func (a *app) open(ctx context.Context, create bool) (*tsdb.Store, error) {
	if a.dir == "" {
		if a.project == "" || a.instance == "" || a.table == "" {
			return nil, usageError{errors.New("no store: give --dir, or --project, --instance and --table")}
		}
		return tsdb.Open(ctx, tsdb.Config{
			Project: a.project, Instance: a.instance, Table: a.table, AppProfile: a.profile, ConditionalAppProfile: a.conditionalProfile,
			BulkAppProfile: a.bulkProfile,
		})
	}
	dir, err := a.folder(create)
	if err != nil {
		return nil, err
	}
	store, err := embedded.Open(ctx, dir)
	if errors.Is(err, tsdb.ErrLocked) {
		a.attached = true
		store, err = embedded.New(ctx, embedded.Options{Dir: dir, Attach: true})
	}
	switch {
	case errors.Is(err, tsdb.ErrLocked):
		return nil, folderError{fmt.Sprintf("another program has the store in %s open%s; attaching to it fails (%v); end it first, or ask that program", dir, holder(dir), err), err}
	case errors.Is(err, tsdb.ErrDamaged):
		return nil, folderError{fmt.Sprintf("the store in %s is damaged: its files are not what was written. Open a copy from a backup (%v)", dir, err), err}
	}
	return store, err
}

// folderError says in the user's terms why a folder cannot be opened.
type folderError struct {
	text string
	err  error
}

func (e folderError) Error() string { return e.text }
func (e folderError) Unwrap() error { return e.err }

// folder returns the folder of --dir that holds a store: itself, or the only one below it, as the folder of a tour has.
// With create it may also be one that has no store.
func (a *app) folder(create bool) (string, error) {
	_, err := os.Stat(filepath.Join(a.dir, storeMarker))
	if err == nil {
		return a.dir, nil
	}
	if _, err := os.Stat(a.dir); err != nil && !(create && errors.Is(err, os.ErrNotExist)) {
		return "", fmt.Errorf("open the store: %w", err)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("open the store: %w", err)
	}
	var below []string
	entries, _ := os.ReadDir(a.dir) // one that is not there has none
	for _, e := range entries {
		dir := filepath.Join(a.dir, e.Name())
		if _, err := os.Stat(filepath.Join(dir, storeMarker)); err == nil {
			below = append(below, dir)
		}
	}
	switch {
	case len(below) == 1:
		a.say("The store is in %s", below[0])
		return below[0], nil
	case len(below) > 1:
		return "", usageError{fmt.Errorf("--dir is %s, which has several stores: give one of %s", a.dir, strings.Join(below, ", "))}
	case create:
		return a.dir, nil
	}
	return "", fmt.Errorf("open the store: the folder %s holds none, nor do the folders in it", a.dir) // opening it would make one
}

// withStore returns an action on the store and, where one is wanted, the tenant that is the only argument.
func (a *app) withStore(wantTenant bool, act func(context.Context, *cli.Command, *tsdb.Store, tenant.ID) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) (err error) {
		var id tenant.ID
		want := 0
		if wantTenant {
			want = 1
		}
		if c.Args().Len() != want {
			return usageError{fmt.Errorf("%s has %d arguments, and takes %d", c.FullName(), c.Args().Len(), want)}
		}
		if wantTenant {
			if id, err = tenant.Parse(c.Args().First()); err != nil {
				return usageError{err}
			}
		}
		if a.form != "text" && a.form != "json" {
			return usageError{fmt.Errorf("--output is %q; want text or json", a.form)}
		}
		if _, err := os.Stat(a.dir); a.dir != "" && c.Bool("dry-run") && errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("open the store: %w; a dry run makes no folder", err)
		}
		store, err := a.open(ctx, c.Bool("create"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		return act(ctx, c, store, id)
	}
}
