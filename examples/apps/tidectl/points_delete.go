package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// delete deletes points of an entity.
func (a *app) delete() *cli.Command {
	return &cli.Command{
		Name: "delete", Usage: "delete the point of an entity at a time, or those of an interval", ArgsUsage: pointArgs, HideHelpCommand: true,
		Flags: []cli.Flag{
			timeFlag("time", "the point's `time`"),
			&cli.StringFlag{Name: "id", Usage: "with --time, the point's `ID`, in a dataset whose points have an identity"},
			timeFlag("from", "delete the points from this `time` on"), timeFlag("to", "delete the points before this `time`"),
			&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
		},
		Action: a.withEntity(func(ctx context.Context, c *cli.Command, v *dynamic.View, e tsdb.Entity) error {
			one, some := c.IsSet("time"), c.IsSet("from") || c.IsSet("to")
			switch {
			case one == some:
				return usageError{errors.New("give the --time of a point, or --from and --to of several; tenants erase --entity deletes all that an entity has")}
			case some && c.IsSet("id"):
				return usageError{errors.New("--id is for --time")}
			}
			repo := v.Repository().WithID(c.String("id"))
			at, in := timeOf(c, "time"), interval(c)
			what := "the point of " + e.String() + " at " + instant.Text(at)
			if some {
				what = "points of " + e.String()
			} else if _, err := repo.Get(ctx, e, at); err != nil {
				return err // the time may be misspelt
			}
			if err := a.confirm(ctx, c.Bool("yes"), "This permanently deletes "+what+".", "delete"); err != nil {
				return err
			}
			deleted, err := 1, error(nil)
			if one {
				err = repo.Delete(ctx, e, at)
			} else {
				deleted, err = repo.DeleteRange(ctx, e, in)
			}
			if err != nil {
				return err
			}
			return a.print(map[string]any{"deleted": deleted}, func(w *tabwriter.Writer) { fmt.Fprintf(w, "Deleted  %d\n", deleted) })
		}),
	}
}
