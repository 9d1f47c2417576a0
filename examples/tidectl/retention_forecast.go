package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
)

// forecast is what the command prints as JSON.
type forecast struct {
	*retention.Forecast
	Drops []retention.Drop `json:"drops,omitempty"`
}

func (a *app) forecastCommand() *cli.Command {
	return &cli.Command{
		Name: "forecast", Usage: "say what the retention classes hold and will hold; reads a sample of the rows", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "set", Usage: "say what another policy would drop, as in `d90=maxage=30d`; may be given several times"},
			&cli.IntFlag{Name: "rows", Usage: "read at most that many `rows`; more are more exact", Value: 200_000},
			&cli.IntFlag{Name: "requests", Usage: "make at most that many `requests`", Value: 2000},
			&cli.Int64Flag{Name: "bytes", Usage: "read at most that many `bytes`", Value: 256 << 20},
			&cli.IntFlag{Name: "weeks", Usage: "look that many `weeks` ahead", Value: 12},
			&cli.DurationFlag{Name: "window", Usage: "judge the rate of writes by that `time` before now", Value: 7 * 24 * time.Hour},
			&cli.Uint64Flag{Name: "seed", Usage: "choose other rows with another `number`"},
		},
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			classes, policies, err := changes(c.StringSlice("set"))
			if err != nil {
				return usageError{err}
			}
			f, err := retention.NewForecast(ctx, store, retention.ForecastOptions{
				Rows: c.Int("rows"), Requests: c.Int("requests"), Bytes: c.Int64("bytes"), Weeks: c.Int("weeks"),
				Window: c.Duration("window"), Seed: c.Uint64("seed"),
			})
			if err != nil {
				return err
			}
			out := forecast{Forecast: f}
			for i, class := range classes {
				drop, err := f.Drops(class, policies[i])
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

// changes reads policies of classes.
func changes(texts []string) (classes []string, policies []gc.Policy, err error) {
	for _, text := range texts {
		class, policy, ok := strings.Cut(text, "=")
		if !ok {
			return nil, nil, fmt.Errorf("--set is %q, and has to be a class and a policy, as in d90=maxage=30d", text)
		}
		p, err := gc.Parse(policy)
		if err == nil {
			_, _, err = p.PointAge()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("--set %s: %w", class, err)
		}
		classes, policies = append(classes, class), append(policies, p)
	}
	return classes, policies, nil
}
