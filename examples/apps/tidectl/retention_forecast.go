package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/forecast"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// forecastAnswer is what the command prints as JSON.
type forecastAnswer struct {
	*forecast.Forecast
	Drops []forecast.Drop `json:"drops,omitempty"`
}

func (a *app) retentionForecast() *cli.Command {
	return &cli.Command{
		Name: "forecast", Usage: "say what the retention classes hold and will hold; reads a sample of the rows", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "set", Usage: "say what another policy of a `class` would drop, as d90=maxage=30d; may be repeated"},
			&cli.IntFlag{Name: "rows", Usage: "read at most that many `rows`; more are more exact", Value: 200_000},
			&cli.IntFlag{Name: "weeks", Usage: "look that many `weeks` ahead", Value: 12},
		},
		DisableSliceFlagSeparator: true,
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			classes, err := classesSet(c)
			if err != nil {
				return err
			}
			for class, policy := range classes {
				if _, _, err := policy.PointAge(); err != nil {
					return usageError{fmt.Errorf("--set %s: %w", class, err)}
				}
			}
			f, err := forecast.New(ctx, store, forecast.Options{Rows: c.Int("rows"), Weeks: c.Int("weeks")})
			if err != nil {
				return err
			}
			out := forecastAnswer{Forecast: f}
			for _, class := range slices.Sorted(maps.Keys(classes)) {
				drop, err := f.Drops(class, classes[class])
				if err != nil {
					return err
				}
				out.Drops = append(out.Drops, drop)
			}
			if a.form == "json" {
				return a.print(out, nil)
			}
			text := f.String()
			for _, drop := range out.Drops {
				text += "\n" + drop.String()
			}
			_, err = fmt.Fprint(a.std.out, text)
			return err
		}),
	}
}
