package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// maxSeries is how many series window.Align takes.
const maxSeries = 100

// align prints the values of several entities at the same times.
func (a *app) align() *cli.Command {
	return &cli.Command{
		Name: "align", Usage: "print numbers of several entities at the same times: those of a grid, or of their points", ArgsUsage: prefixArgs, HideHelpCommand: true,
		Flags: []cli.Flag{
			requiredTime("from", "the `time` of the first row"), requiredTime("to", "the `time` before which the last one is"),
			&cli.StringSliceFlag{Name: "entity", Usage: "the other key `fields` of an entity, as device=roof-7 or 'site=a&device=b', percent-escaped as in a query of HTTP; repeat it", Required: true},
			&cli.StringSliceFlag{Name: "measure", Usage: measureUsage("; may be repeated")},
			&cli.StringFlag{Name: "every", Usage: "a row at each multiple of this `width`: 15m, 1h, 1d; without it, at the time of each point"},
			zoneFlag(),
			&cli.DurationFlag{Name: "max-age", Usage: "how `old` a value may be; 0 for any"},
		},
		Action: a.withView(func(ctx context.Context, c *cli.Command, _ *tsdb.Store, _ tenant.ID, v *dynamic.View) error {
			all, names, measures, err := a.seriesOf(c, v)
			if err != nil {
				return err
			}
			opts := window.AlignOptions{MaxAge: c.Duration("max-age"), Order: tsdb.OldestFirst}
			var grid window.Grid // zero for the times of points
			if c.IsSet("every") {
				if grid, err = gridOf(c); err != nil {
					return err
				}
			}
			out, err := a.rows(append([]string{"time"}, names...)...)
			if err != nil {
				return err
			}
			for r, err := range window.Align(ctx, grid, interval(c), all, opts) {
				if _, one := errors.AsType[*tsdb.PointError](err); one {
					a.say("%v", err)
					continue
				}
				if err != nil {
					return out.end(err)
				}
				row := aggregate.AlignedRow(&r)
				for i := range r.Values {
					row[1+i] = a.digits(row[1+i])
				}
				if err := out.add(r, row...); err != nil {
					return err
				}
			}
			missing := error(nil)
			for i := range measures {
				if measures[i].other.Load() != nil { // a point was read; its row may be missing for the lack of a value
					missing = errors.Join(missing, measures[i].missing(c, 1))
				}
			}
			return errors.Join(out.end(nil), missing)
		}),
	}
}

// seriesOf returns a series for each measure of each entity, and their names.
func (a *app) seriesOf(c *cli.Command, v *dynamic.View) (all []window.Series[codec.Value], names []string, measures []measure, err error) {
	leading, err := leadingOf(c, v)
	if err != nil {
		return nil, nil, nil, err
	}
	texts := c.StringSlice("measure")
	if len(texts) == 0 {
		texts = []string{""}
	}
	for _, text := range texts {
		m, err := a.numbersOf(text)
		if err != nil {
			return nil, nil, nil, err
		}
		measures = append(measures, m)
	}
	if n := len(measures) * len(c.StringSlice("entity")); n > maxSeries {
		return nil, nil, nil, usageError{fmt.Errorf("--entity and --measure name %d series; want %d at most", n, maxSeries)}
	}
	key, repo := keyFieldsOf(v), v.Repository()
	for _, text := range c.StringSlice("entity") {
		values := map[string]string{}
		for i, part := range leading {
			values[key[i]] = part.(string)
		}
		fields, err := url.ParseQuery(text)
		for name, given := range fields {
			if _, twice := values[name]; twice || len(given) > 1 || !slices.Contains(key, name) {
				err = errors.New("want each field once")
			}
			values[name] = given[0]
		}
		if err != nil {
			return nil, nil, nil, usageError{fmt.Errorf("--entity %s: %w; the fields are %s", text, err, strings.Join(key, ", "))}
		}
		e, err := v.Entity(values)
		if err != nil {
			return nil, nil, nil, usageError{fmt.Errorf("--entity %s: %w", text, err)}
		}
		for _, m := range measures {
			all = append(all, window.NewSeries(repo, e, m.exact))
			names = append(names, strings.Join(v.Values(e), "/")+" "+m.Name)
		}
	}
	return all, names, measures, nil
}

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

// uptime prints how long an entity was reporting.
func (a *app) uptime() *cli.Command {
	return &cli.Command{
		Name: "uptime", Usage: "print how long an entity was reporting, by hours, days or any other width", ArgsUsage: pointArgs, HideHelpCommand: true,
		Flags: []cli.Flag{
			requiredTime("from", "the `time` at which the first window begins"), requiredTime("to", "the `time` at which the last one ends"), longerFlag(),
			&cli.StringFlag{Name: "every", Usage: "the `width`: 15m, 1h, 1d, 1w, 1mo", Required: true},
			zoneFlag(),
		},
		Action: a.withEntity(func(ctx context.Context, c *cli.Command, v *dynamic.View, e tsdb.Entity) error {
			longer, err := longerOf(c)
			if err != nil {
				return err
			}
			grid, err := gridOf(c)
			if err != nil {
				return err
			}
			out, err := a.rows(aggregate.UptimeHeader...)
			if err != nil {
				return err
			}
			for u, err := range window.ReadUptime(ctx, grid, v.Repository(), e, interval(c), longer, tsdb.OldestFirst) {
				if err != nil {
					return out.end(err)
				}
				row := aggregate.UptimeRow(u)
				row[3], row[4] = a.digits(row[3]), a.digits(row[4]) // seconds
				if err := out.add(u, row...); err != nil {
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
