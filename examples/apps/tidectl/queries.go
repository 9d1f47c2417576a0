package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

const prefixArgs = "DATASET TENANT [FIELD=VALUE...]"

// rangeUnder prints the points of the entities below a prefix.
func (a *app) rangeUnder() *cli.Command {
	return &cli.Command{
		Name: "range", Usage: "print the points of all entities, or of those with these first key fields", ArgsUsage: prefixArgs, HideHelpCommand: true,
		Flags: []cli.Flag{
			timeFlag("from", "only points from this `time` on"), timeFlag("to", "only points before this `time`"),
			&cli.StringFlag{Name: "by", Usage: "the order: by entity, or all by time", Value: "entity"},
			&cli.BoolFlag{Name: "oldest-first", Usage: "print the oldest points first"},
			&cli.IntFlag{Name: "limit", Usage: "how `many` points at most; 0 for all", Value: 100},
			&cli.StringSliceFlag{Name: "measure", Usage: "with -o parquet or csv, a column with the `field` of the payloads, as temp_c or door:state, in place of all fields; may be repeated"},
		},
		Action: a.withView(func(ctx context.Context, c *cli.Command, _ *tsdb.Store, _ tenant.ID, v *dynamic.View) error {
			by, limit := c.String("by"), c.Int("limit")
			measures, err := a.measuresOf(c.StringSlice("measure"))
			switch {
			case err != nil:
				return err
			case c.IsSet("measure") && a.form != "parquet" && a.form != "csv":
				return usageError{errors.New("--measure is for -o parquet and -o csv")}
			case by != "entity" && by != "time":
				return usageError{fmt.Errorf("--by is %q; want entity or time", by)}
			case limit < 0:
				return usageError{fmt.Errorf("--limit is %d; want 0 or more", limit)}
			}
			parts, err := leadingOf(c, v)
			if err != nil {
				return err
			}
			opts := []tsdb.ReadOption{tsdb.NewestFirst}
			if c.Bool("oldest-first") {
				opts[0] = tsdb.OldestFirst
			}
			if limit > 0 {
				opts = append(opts, tsdb.Limit(limit+1))
			}
			seq := tsdb.PrefixReader[dynamic.Payload].Range
			if by == "time" {
				seq = tsdb.PrefixReader[dynamic.Payload].Merged
			}
			out, err := a.points(v, measures...)
			if err != nil {
				return err
			}
			points, err := pointsOf(ctx, c, v, parts, seq, opts)
			if err != nil {
				return err
			}
			for p, err := range points {
				point, err := pointOf(p, err)
				if err != nil {
					return out.end(err)
				}
				if limit > 0 && out.printed == limit {
					a.say("There are more points; --limit shows more")
					break
				}
				if err := out.add(point); err != nil {
					return err
				}
			}
			err = out.end(nil)
			a.sayMissing(measures, int64(out.printed))
			return err
		}),
	}
}

type rangeFunc = func(tsdb.PrefixReader[dynamic.Payload], context.Context, tsdb.Interval, ...tsdb.ReadOption) iter.Seq2[tsdb.Point[dynamic.Payload], error]

// pointsOf returns the points of one entity if all key fields are given, and else of those under a prefix.
func pointsOf(ctx context.Context, c *cli.Command, v *dynamic.View, parts []any, below rangeFunc, opts []tsdb.ReadOption) (iter.Seq2[tsdb.Point[dynamic.Payload], error], error) {
	repo := v.Repository()
	if len(parts) == len(keyFieldsOf(v)) {
		e, err := entityOf(c, v)
		return repo.Range(ctx, e, interval(c), opts...), err
	}
	p, err := repo.Schema().Prefix(parts...)
	return below(repo.Under(p), ctx, interval(c), opts...), err
}

// silent prints the entities below a prefix that have sent nothing since a time.
func (a *app) silent() *cli.Command {
	return &cli.Command{
		Name: "silent", Usage: "print the entities that have sent nothing since a time, the longest silence first", ArgsUsage: prefixArgs, HideHelpCommand: true,
		Flags: []cli.Flag{
			timeFlag("since", "the `time` since which they have sent nothing"),
			&cli.DurationFlag{Name: "for", Usage: "or for how `long`, as 2h"},
			&cli.IntFlag{Name: "limit", Usage: "how `many` entities at most, 1 to 9999", Value: 100},
		},
		Action: a.withView(func(ctx context.Context, c *cli.Command, _ *tsdb.Store, _ tenant.ID, v *dynamic.View) error {
			since, long, limit := timeOf(c, "since"), c.Duration("for"), c.Int("limit")
			switch {
			case c.IsSet("since") == c.IsSet("for"):
				return usageError{errors.New("give --since or --for")}
			case c.IsSet("for") && long <= 0:
				return usageError{fmt.Errorf("--for is %v; want more than 0s", long)}
			case limit < 1 || limit > 9999:
				return usageError{fmt.Errorf("--limit is %d; want 1 to 9999", limit)}
			case c.IsSet("for"):
				since = time.Now().Add(-long)
			}
			found, err := a.silences(ctx, c, v, since, limit+1)
			if err != nil {
				return err
			}
			key := keyFieldsOf(v)
			out, err := a.rows(append(slices.Clone(key), "last")...)
			if err != nil {
				return err
			}
			for i, s := range found {
				if i == limit {
					a.say("There are more entities; --limit shows more")
					break
				}
				row := struct {
					Key  map[string]string `json:"key"`
					Last instant.Time      `json:"last"`
				}{map[string]string{}, instant.Time{Time: s.Last}}
				values := v.Values(s.Entity)
				for i, name := range key {
					row.Key[name] = values[i]
				}
				if err := out.add(row, append(values, aggregate.Instant(s.Last))...); err != nil {
					return err
				}
			}
			return out.end(nil)
		}),
	}
}

// silences returns those of the entities that the arguments name which have sent nothing since a time.
func (a *app) silences(ctx context.Context, c *cli.Command, v *dynamic.View, since time.Time, most int) ([]tsdb.Silence, error) {
	p, whole, err := prefixOf(c, v)
	if err != nil {
		return nil, err
	}
	if !whole {
		return v.Repository().Under(p).Silent(ctx, since, most)
	}
	e, err := a.knownEntity(ctx, c, v)
	if err != nil {
		return nil, err
	}
	newest, err := v.Repository().Latest(ctx, e)
	switch {
	case errors.Is(err, tsdb.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case newest.Time.Before(since):
		return []tsdb.Silence{{Entity: e, Last: newest.Time}}, nil
	}
	a.say("%s is not silent: it sent its newest point at %s", e, aggregate.Instant(newest.Time))
	return nil, nil
}

// prefixOf returns the prefix that the arguments name by its first key fields; without any, it is that of all entities.
// With all key fields it is one whole entity, which no query under a prefix takes.
func prefixOf(c *cli.Command, v *dynamic.View) (p tsdb.Prefix, whole bool, err error) {
	parts, err := leadingOf(c, v)
	if err != nil {
		return p, false, err
	}
	if len(parts) < len(keyFieldsOf(v)) {
		p, err = v.Repository().Schema().Prefix(parts...)
		return p, false, err
	}
	e, err := entityOf(c, v)
	return tsdb.NewPrefix(e.Parts()...), true, err
}

// leadingOf returns the values of the first key fields that the arguments name.
func leadingOf(c *cli.Command, v *dynamic.View) (parts []any, err error) {
	values, err := fieldsOf(c, v)
	if err != nil {
		return nil, err
	}
	key := keyFieldsOf(v)
	for _, name := range key {
		value, ok := values[name]
		if !ok {
			break
		}
		parts = append(parts, value)
		delete(values, name)
	}
	for name := range values {
		return nil, usageError{fmt.Errorf("%s is not one of the first key fields, which are %s", name, strings.Join(key, ", "))}
	}
	return parts, nil
}
