package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// outages prints when an entity sent nothing.
func (a *app) outages() *cli.Command {
	return &cli.Command{
		Name: "outages", Usage: "print the times in which an entity sent nothing for long, newest first", ArgsUsage: pointArgs, HideHelpCommand: true,
		Flags: []cli.Flag{
			requiredTime("from", "the `time` from which on outages count"), requiredTime("to", "the `time` up to which they count"), longerFlag(),
			&cli.IntFlag{Name: "limit", Usage: "how `many` outages at most; 0 for all", Value: 100},
		},
		Action: a.withEntity(func(ctx context.Context, c *cli.Command, v *dynamic.View, e tsdb.Entity) error {
			longer, err := longerOf(c)
			if limit := c.Int("limit"); err == nil && limit < 0 {
				err = usageError{fmt.Errorf("--limit is %d; want 0 or more", limit)}
			}
			if err != nil {
				return err
			}
			out, err := a.rows(aggregate.OutageHeader...)
			if err != nil {
				return err
			}
			for o, err := range window.Outages(ctx, v.Repository(), e, interval(c), longer) {
				if err != nil {
					return out.end(err)
				}
				if limit := c.Int("limit"); limit > 0 && out.printed == limit {
					a.say("There are more outages; --limit shows more")
					break
				}
				if err := out.add(o, aggregate.OutageRow(o)...); err != nil {
					return err
				}
			}
			return out.end(nil)
		}),
	}
}

func longerFlag() cli.Flag {
	return &cli.DurationFlag{Name: "longer", Usage: "a silence longer than this `time` is an outage, as 15m", Required: true}
}

func longerOf(c *cli.Command) (time.Duration, error) {
	longer := c.Duration("longer")
	if longer <= 0 {
		return 0, usageError{fmt.Errorf("--longer is %v; want more than 0s", longer)}
	}
	return longer, nil
}
