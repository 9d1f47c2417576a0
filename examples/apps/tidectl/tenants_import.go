package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// shownRefusals is how many refused points are named.
const shownRefusals = 10

func (a *app) tenantsImport() *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "store the points of a file; again changes nothing", ArgsUsage: "TENANT", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Usage: "the `file`; - is standard input", Required: true},
			keyFlag(),
			&cli.StringFlag{Name: "continue", Usage: "go on behind this `checkpoint`, which an interrupted import printed"},
			&cli.StringSliceFlag{Name: "dataset", Usage: "only this `dataset`; may be repeated"},
			&cli.BoolFlag{Name: "create", Usage: "make the datasets that the store lacks"},
			&cli.BoolFlag{Name: "extend", Usage: "add the codec tags and retention classes that datasets of the store lack; programs without them do not start afterwards"},
			&cli.BoolFlag{Name: "other-tenant", Usage: "let the file be one of another tenant"},
			&cli.BoolFlag{Name: "dry-run", Usage: "check the file and the catalogue, and write nothing"},
		},
		Action: a.withStore(true, func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID) error {
			opts := transfer.ImportOptions{OtherTenant: c.Bool("other-tenant"), Create: c.Bool("create"), Extend: c.Bool("extend"), DryRun: c.Bool("dry-run")}
			var err error
			if opts.Key, err = readKey(c.String(keyFlagName)); err != nil {
				return err
			}
			if names := c.StringSlice("dataset"); len(names) > 0 {
				opts.Datasets = names
			}
			if text := c.String("continue"); text != "" {
				if err := json.Unmarshal([]byte(text), &opts.Continue); err != nil {
					return usageError{fmt.Errorf("--continue is no checkpoint: %w", err)}
				}
			}
			r, size, err := a.openFile(c.String("file"))
			if err != nil {
				return err
			}
			defer r.Close()
			bar := a.bar("Importing", size)
			opts.Progress = func(i transfer.Imported) { bar.set(i.Checkpoint.Offset) }
			shown := 0
			opts.Refused = func(err error) {
				if shown++; shown <= shownRefusals {
					a.say("Passed over: %v", err)
				}
			}
			got, err := transfer.Import(ctx, store, id, r, opts)
			bar.end()
			if err != nil {
				return a.stopped(ctx, opts, got, err)
			}
			return a.print(got, func(w *tabwriter.Writer) {
				stored := "Stored"
				if opts.DryRun {
					stored = "Would be sent"
				}
				fmt.Fprintf(w, "Read\t%d points of %s\n%s\t%d\n", got.Points, got.Tenant, stored, got.Stored)
				for _, n := range []struct {
					what  string
					count int64
				}{
					{"Before", got.Before}, {"Expired", got.Expired}, {"Exists", got.Exists}, {"Erased", got.Erased}, {"Refused", got.Refused},
				} {
					if n.count > 0 {
						fmt.Fprintf(w, "%s\t%d\n", n.what, n.count)
					}
				}
			})
		}),
	}
}

// stopped says how to go on with an import that has ended early.
func (a *app) stopped(ctx context.Context, opts transfer.ImportOptions, got transfer.Imported, err error) error {
	if got.Checkpoint.Line > opts.Continue.Line && !opts.DryRun { // before that, it has gone over what was stored already
		with := "The same command"
		if errors.Is(err, transfer.ErrDamaged) {
			with = "With a whole copy of the file the same command"
		}
		at, merr := json.Marshal(got.Checkpoint)
		if merr == nil {
			a.say("%d points are accounted for. %s goes on with --continue '%s'", got.Checkpoint.Points, with, at)
		}
	}
	_, conflicts := errors.AsType[*tsdb.ConflictError](err)
	switch {
	case ctx.Err() != nil && opts.Continue.Line > 0 && got.Checkpoint.Line <= opts.Continue.Line:
		return fmt.Errorf("%w before anything was stored: the same --continue goes on", errInterrupted)
	case ctx.Err() != nil:
		return errInterrupted
	case errors.Is(err, transfer.ErrVersion):
		return fmt.Errorf("%w; import takes what %q writes as ndjson, uncompressed: no CSV, Parquet or other files", err, "tenants export")
	case errors.Is(err, transfer.ErrTenant):
		return fmt.Errorf("%w; --other-tenant takes it", err)
	case errors.Is(err, tsdb.ErrNoTable), conflicts && (!opts.Create || !opts.Extend):
		return fmt.Errorf("%w; --create adds datasets that are missing, and --extend tags and classes, which programs must then declare", err)
	}
	return err
}

func (a *app) openFile(name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(a.std.in), -1, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder; want a file", name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}
