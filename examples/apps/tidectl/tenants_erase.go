package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

func (a *app) tenantsErase() *cli.Command {
	return &cli.Command{
		Name: "erase", Usage: "erase a tenant, or one entity of it; asks first", ArgsUsage: "TENANT", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringMapFlag{Name: "entity", Usage: "erase only the entity with this `field=value`; once for each key field"},
			&cli.StringFlag{Name: "dataset", Usage: "erase the entity in this `dataset` only"},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
			&cli.BoolFlag{Name: "dry-run", Usage: "count what would be erased; changes nothing"},
			&cli.StringFlag{Name: "by", Usage: "who asked for it, for the report"},
			&cli.StringFlag{Name: "reason", Usage: "why, for the report"},
			&cli.BoolFlag{Name: "range", Usage: "delete with one admin call; not on replicated instances"},
			&cli.DurationFlag{
				Name: "settle", Usage: "how long to wait between the mark and the deletion", DefaultText: "1s in a folder to which no program has ever attached; else 10s and the timeout of scans, 5m",
			},
		},
		DisableSliceFlagSeparator: true,
		Action: a.withTenant(func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID) error {
			fields, dataset := c.StringMap("entity"), c.String("dataset")
			if dataset != "" && len(fields) == 0 {
				return usageError{fmt.Errorf("--dataset is for --entity")}
			}
			opts := tenants.EraseOptions{
				DryRun: c.Bool("dry-run"), By: c.String("by"), Reason: c.String("reason"), Range: c.Bool("range"), Settle: c.Duration("settle"),
			}
			what := "everything of tenant " + id.String()
			if len(fields) > 0 {
				what = fmt.Sprintf("the entity %v of tenant %s", fields, id)
			}
			if !opts.DryRun {
				if err := a.confirm(ctx, c.Bool("yes"), "This permanently erases "+what+".", id.String()); err != nil {
					return err
				}
			}
			bar, waiting, deleting := a.bar("Erasing", -1), false, false
			opts.Progress = func(p tenants.Progress) {
				if p.State == tenants.Deleting && !deleting { // the total is known from here on
					bar.end()
					bar, deleting = a.bar("Erasing", p.Counted), true
				}
				doing := "Erasing, " + string(p.State)
				if p.Waiting > 0 {
					if bar.shown == nil && (!waiting || p.Waiting%time.Minute < time.Second) {
						fmt.Fprintf(a.std.err, "Waiting %v until every program applies the mark\n", p.Waiting.Round(time.Second))
					}
					waiting = true
					doing += fmt.Sprintf(", %v to wait", p.Waiting.Round(time.Second))
				}
				bar.describe(doing)
				if deleting {
					bar.set(p.Deleted)
				} else {
					bar.set(p.Counted)
				}
			}
			begin := time.Now()
			var r tenants.Report
			var err error
			if len(fields) > 0 {
				r, err = tenants.EraseEntity(ctx, store, id, dataset, fields, opts)
			} else {
				r, err = tenants.Erase(ctx, store, id, opts)
			}
			bar.end()
			if err != nil && ctx.Err() != nil {
				return fmt.Errorf("%w after %v: the same command goes on with the erasure", errInterrupted, time.Since(begin).Round(time.Second))
			}
			if err != nil {
				return err
			}
			return a.print(r, func(w *tabwriter.Writer) { fmt.Fprintln(w, r) })
		}),
	}
}
