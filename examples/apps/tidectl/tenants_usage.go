package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

func (a *app) tenantsUsage() *cli.Command {
	return &cli.Command{
		Name: "usage", Usage: "count what a tenant has stored; reads the keys of all its rows", ArgsUsage: "TENANT", HideHelpCommand: true,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "exact", Usage: "read all values to count their bytes"}},
		Action: a.withTenant(func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID) error {
			r, err := a.count(ctx, store, id, c.Bool("exact"))
			if err != nil {
				return err
			}
			return a.print(r, func(w *tabwriter.Writer) {
				fmt.Fprintln(w, "DATASET\tKIND\tROWS\tPOINTS\tENTITIES\tSIZE\tOLDEST\tNEWEST")
				for _, k := range r.Kinds {
					fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", k.Dataset, k.Kind, k.Rows, k.Points, k.Entities, size(k.Bytes), stamp(k.Oldest), stamp(k.Newest))
				}
			})
		}),
	}
}

// count counts what a tenant has stored, and shows the progress.
func (a *app) count(ctx context.Context, store *tsdb.Store, id tenant.ID, exact bool) (tenants.UsageReport, error) {
	bar := a.bar("Counting", -1)
	defer bar.end()
	return tenants.Usage(ctx, store, id, tenants.UsageOptions{Exact: exact, Progress: func(r tenants.UsageReport) {
		rows := int64(0)
		for _, k := range r.Kinds {
			rows += k.Rows
		}
		bar.set(rows)
	}})
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return instant.Text(t.Truncate(time.Second))
}
