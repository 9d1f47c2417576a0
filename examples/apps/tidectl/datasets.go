package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// datasets is the group of commands that show datasets, and delete them and their unused parts.
func (a *app) datasets() *cli.Command {
	return &cli.Command{
		Name:  "datasets",
		Usage: "list and delete datasets, and remove unused classes, tags and rollups",
		Commands: []*cli.Command{
			a.datasetsList(), a.datasetsShow(), a.datasetsPlan(), a.datasetsRetire(), a.datasetsRemove(), a.datasetsRelease(),
		},
	}
}

func partFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "dataset", Usage: "the `dataset`; without another flag, the whole dataset"},
		&cli.StringFlag{Name: "class", Usage: "a retention `class` of the dataset; without --dataset, the column families of a class that no dataset uses"},
		&cli.StringFlag{Name: "tag", Usage: "a codec `tag` of the dataset"},
		&cli.StringFlag{Name: "rollup", Usage: "a `rollup` of the dataset"},
	}, more...)
}

func unexpiredFlag() cli.Flag {
	return &cli.BoolFlag{Name: "unexpired", Usage: "also delete unexpired data of a class, a tag or a rollup"}
}

func partOf(c *cli.Command) tenants.Part {
	return tenants.Part{Dataset: c.String("dataset"), Class: c.String("class"), Tag: c.String("tag"), Rollup: c.String("rollup")}
}

func (a *app) datasetsPlan() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "count what a removal would delete of each tenant, and list what prevents it; changes nothing", HideHelpCommand: true,
		Flags: partFlags(unexpiredFlag(), detailedFlag()),
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			r, err := tenants.Remove(ctx, store, partOf(c), tenants.RemoveOptions{DryRun: true, Unexpired: c.Bool("unexpired")})
			if err != nil {
				return err
			}
			if err := a.print(r, func(w *tabwriter.Writer) { fmt.Fprint(w, r) }); err != nil {
				return err
			}
			switch {
			case len(r.Impossible) > 0:
				return fmt.Errorf("%w: %s", tenants.ErrImpossible, r.Part)
			case c.Bool("detailed-exitcode"):
				return errChanges
			}
			return nil
		}),
	}
}

func (a *app) datasetsRemove() *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "delete a dataset, or remove a class, a tag or a rollup; shows what is deleted, and asks first", HideHelpCommand: true,
		Flags: partFlags(
			unexpiredFlag(),
			&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
			&cli.StringFlag{Name: "by", Usage: "who asked for it, for the report"},
			&cli.StringFlag{Name: "reason", Usage: "why, for the report"},
			&cli.IntFlag{Name: "rows-per-second", Usage: "delete at most this many rows per second", Value: 20_000},
			&cli.DurationFlag{
				Name: "settle", Usage: "how long to wait between the mark and the deletion", DefaultText: "1s in a folder to which no program has ever attached; else 10s and the timeout of scans, 5m",
			},
		),
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			part := partOf(c)
			opts := tenants.RemoveOptions{
				Unexpired: c.Bool("unexpired"), By: c.String("by"), Reason: c.String("reason"), RowsPerSecond: c.Int("rows-per-second"), Settle: c.Duration("settle"),
			}
			if !c.Bool("yes") {
				if err := a.confirmRemoval(ctx, store, part, opts); err != nil {
					return err
				}
			}
			begin := time.Now()
			bar := a.bar("Removing", -1)
			opts.Progress = func(p tenants.Progress) {
				bar.describe("Removing, " + string(p.State))
				bar.set(p.Counted + p.Deleted)
			}
			r, err := tenants.Remove(ctx, store, part, opts)
			bar.end()
			if err != nil && ctx.Err() != nil {
				return fmt.Errorf("%w after %v: the same command goes on with the removal", errInterrupted, time.Since(begin).Round(time.Second))
			}
			if errors.Is(err, tenants.ErrImpossible) {
				a.say("%v", r)
			}
			if err != nil {
				return err
			}
			return a.print(r, func(w *tabwriter.Writer) { fmt.Fprint(w, r) })
		}),
	}
}

// confirmRemoval shows what would be deleted, and asks the user to type its name.
func (a *app) confirmRemoval(ctx context.Context, store *tsdb.Store, part tenants.Part, opts tenants.RemoveOptions) error {
	opts.DryRun = true
	r, err := tenants.Remove(ctx, store, part, opts)
	if err != nil {
		return err
	}
	a.say("%v", r)
	if len(r.Impossible) > 0 {
		return fmt.Errorf("%w: %s", tenants.ErrImpossible, part)
	}
	name := part.Dataset
	for _, n := range []string{part.Class, part.Tag, part.Rollup} {
		if n != "" {
			name = n
		}
	}
	return a.confirm(ctx, false, "This permanently removes "+part.String()+" of all tenants.", name)
}

func (a *app) datasetsRetire() *cli.Command {
	return &cli.Command{
		Name: "retire", Usage: "allow programs both with and without a class, a tag or a rollup, before you remove it; deletes nothing", HideHelpCommand: true,
		Flags: partFlags(),
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			if err := tenants.Retire(ctx, store, partOf(c)); err != nil {
				return err
			}
			a.say("%s is retired", partOf(c))
			return nil
		}),
	}
}

func (a *app) datasetsRelease() *cli.Command {
	return &cli.Command{
		Name: "release", Usage: "allow the name of a deleted, retired or removed part again", HideHelpCommand: true,
		Flags: partFlags(),
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			if err := tenants.Release(ctx, store, partOf(c)); err != nil {
				return err
			}
			a.say("%s can be declared again", partOf(c))
			return nil
		}),
	}
}
