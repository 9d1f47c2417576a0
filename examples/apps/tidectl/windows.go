package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func windowFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		requiredTime("from", "the `time` at which the first window begins"), requiredTime("to", "the `time` at which the last one ends"),
		&cli.StringSliceFlag{Name: "measure", Usage: measureUsage(", with its kind unless it is a gauge, as kwh:counter or relay:state, or with its own aggregates, as kwh:increase+rate or temp_c:mean; may be repeated")},
		&cli.StringFlag{Name: "every", Usage: "the `width`: 15m, 1h, 1d, 1w, 1mo", Required: true},
		zoneFlag(),
		&cli.StringSliceFlag{Name: "aggregate", Usage: "one of " + strings.Join(aggregate.Names(), ", ") + ", for the measures without their own; those of the kind by default"},
		&cli.StringFlag{Name: "gaps", Usage: "how windows without a number are filled: leave-out, null, previous or linear", Value: "leave-out"},
		&cli.DurationFlag{Name: "max-gap", Usage: "the longest `time` that is filled; 0 for any"},
	}, more...)
}

// windows prints aggregates by window of time.
func (a *app) windows() *cli.Command {
	return &cli.Command{
		Name: "windows", Usage: "print aggregates of the fields of an entity by hours, days or any other width", ArgsUsage: pointArgs, HideHelpCommand: true,
		Flags: windowFlags(&cli.BoolFlag{
			Name: "rollups", Usage: "read a rollup where one fits, by the names of its measures; windows that it cannot know are marked as incomplete",
		}),
		Action: a.withView(func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID, v *dynamic.View) error {
			q, err := a.queryOf(c)
			if err != nil {
				return err
			}
			e, err := a.knownEntity(ctx, c, v)
			if err != nil {
				return err
			}
			header := q.columns.Header()
			name, found := "", q.windows.Read(ctx, q.from(v), e, interval(c), tsdb.OldestFirst)
			if c.Bool("rollups") {
				header = append(header, "open", "incomplete")
				r, err := a.reader()
				if err != nil {
					return err
				}
				rolled, windows, err := q.fromRollup(ctx, c, store, id, described(v).Name, e, r.options)
				if err != nil {
					return err
				}
				if rolled != "" {
					name, found = rolled, windows
				}
			}
			if q.rollup = name != ""; q.rollup {
				a.say("Read from rollup %s", name)
			}
			out, err := a.rows(header...)
			if err != nil {
				return err
			}
			incomplete := 0
			for b, err := range found {
				if _, one := errors.AsType[*tsdb.PointError](err); one {
					a.say("%v", err)
					continue
				}
				if err != nil {
					return out.end(err)
				}
				q.count(&b)
				b, remark := stored(b)
				row := q.row(a, &b)
				if c.Bool("rollups") {
					row = append(row, strconv.FormatBool(b.Open), remark)
				}
				if remark != "" {
					incomplete++
				}
				if err := out.add(rolled{q.columns.Bucket(&b), remark}, row...); err != nil {
					return err
				}
			}
			err = errors.Join(out.end(nil), q.missing(c))
			if incomplete > 0 {
				a.say("%d windows are incomplete and show what is stored: they changed since, and only the program that defines the rollup can compute them", incomplete)
			}
			return err
		}),
	}
}

// shownGroup is the windows of a group in JSON.
type shownGroup struct {
	Key      map[string]string  `json:"key"`
	Entities int                `json:"entities"`
	Buckets  []aggregate.Bucket `json:"buckets"`
}

// groups prints the windows of groups of entities.
func (a *app) groups() *cli.Command {
	return &cli.Command{
		Name: "groups", Usage: "print windows of groups of entities, each adding up those of its entities", ArgsUsage: prefixArgs, HideHelpCommand: true,
		Flags: windowFlags(&cli.StringFlag{Name: "by", Usage: "the last key `field` that the entities of a group share; without it, all entities are one group"}),
		Action: a.withView(func(ctx context.Context, c *cli.Command, _ *tsdb.Store, _ tenant.ID, v *dynamic.View) error {
			q, err := a.queryOf(c)
			if err != nil {
				return err
			}
			p, whole, err := prefixOf(c, v)
			if err != nil {
				return err
			}
			key := keyFieldsOf(v)
			given := len(p.Parts())
			share := given
			switch by := c.String("by"); {
			case by != "" && whole:
				return usageError{fmt.Errorf("--by is %q, and all key fields are given, which is one entity: leave out --by, or %s", by, key[len(key)-1])}
			case by != "":
				share = slices.Index(key, by) + 1
				allowed := key[max(given-1, 0) : len(key)-1]
				if len(allowed) == 0 {
					return usageError{fmt.Errorf("--by is %q, and the entities of dataset %s share no key field: %s is the only one; leave out --by", by, described(v).Name, key[0])}
				}
				if share < max(given, 1) || share == len(key) {
					return usageError{fmt.Errorf("--by is %q; want one of %s", by, strings.Join(allowed, ", "))}
				}
			}
			header := slices.Concat(key[:share], q.columns.Header())
			out, err := a.rows(slices.Insert(header, share+2, "entities")...) // behind start and end
			if err != nil {
				return err
			}
			all := q.windows.ReadGroups(ctx, v.Repository().Under(p), share-given, interval(c), tsdb.OldestFirst)
			if whole {
				all = q.ofOne(ctx, c, v, p)
			}
			for g, err := range all {
				if err != nil {
					return out.end(err)
				}
				values := valuesOf(v, g.Prefix)
				shown := shownGroup{Key: map[string]string{}, Entities: g.Entities, Buckets: []aggregate.Bucket{}}
				for i, value := range values {
					shown.Key[key[i]] = value
				}
				for i := range g.Buckets {
					b := &g.Buckets[i]
					q.count(b)
					if a.form == "json" {
						shown.Buckets = append(shown.Buckets, q.columns.Bucket(b))
						continue
					}
					row := slices.Insert(slices.Concat(values, q.row(a, b)), share+2, strconv.FormatInt(b.Entities, 10))
					if err := out.add(nil, row...); err != nil {
						return err
					}
				}
				if a.form == "json" {
					if err := out.add(shown); err != nil {
						return err
					}
				}
			}
			for _, m := range q.measures {
				if n := m.failed.Load(); n > 0 {
					a.say("The field %q cannot be read in %d payloads, which bad does not count", m.Name, n)
				}
			}
			return errors.Join(out.end(nil), q.missing(c))
		}),
	}
}

// ofOne returns the windows of one entity as a group.
func (q *windowQuery) ofOne(ctx context.Context, c *cli.Command, v *dynamic.View, p tsdb.Prefix) iter.Seq2[window.Group, error] {
	return func(yield func(window.Group, error) bool) {
		g := window.Group{Prefix: p, Entities: 1}
		for b, err := range q.windows.Read(ctx, q.from(v), tsdb.NewEntity(p.Parts()...), interval(c), tsdb.OldestFirst) {
			if _, one := errors.AsType[*tsdb.PointError](err); one {
				continue // it is counted in its window
			}
			if err != nil {
				yield(g, err)
				return
			}
			b.Entities = 1
			g.Buckets = append(g.Buckets, b)
		}
		if len(g.Buckets) > 0 {
			yield(g, nil)
		}
	}
}

// valuesOf returns the values of a prefix's key fields as text.
func valuesOf(v *dynamic.View, p tsdb.Prefix) []string {
	parts := p.Parts()
	n := len(parts)
	return v.Values(tsdb.NewEntity(append(parts, slices.Repeat([]string{"0"}, len(keyFieldsOf(v))-n)...)...))[:n]
}

// windowQuery is what the flags of windows ask for.
type windowQuery struct {
	grid     window.Grid
	opts     window.Options
	windows  *window.Aggregator[dynamic.Payload]
	measures []measure
	columns  aggregate.Columns
	points   atomic.Int64 // of the windows
	rollup   bool         // its numbers are not counted
}

// checked are the points of a repository, with an error for each in which a measure cannot be read.
type checked struct {
	*tsdb.Repository[dynamic.Payload]
	measures []measure
}

func (q *windowQuery) from(v *dynamic.View) checked { return checked{v.Repository(), q.measures} }

// Range implements window.Ranger.
func (c checked) Range(ctx context.Context, e tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[dynamic.Payload], error] {
	return func(yield func(tsdb.Point[dynamic.Payload], error) bool) {
		for p, err := range c.Repository.Range(ctx, e, in, opts...) {
			for i := 0; err == nil && i < len(c.measures); i++ {
				if bad := c.measures[i].check(p.Value); bad != nil {
					err = &tsdb.PointError{Entity: p.Entity, Time: p.Time, ID: p.ID, Err: bad}
				}
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// count notes the points of a window.
func (q *windowQuery) count(b *window.Bucket) { q.points.Add(b.Points) }

// row returns a window as a row of a table. For people, numbers have sensible digits.
func (q *windowQuery) row(a *app, b *window.Bucket) []string {
	row := q.columns.Row(b)
	if a.form != "text" {
		return row
	}
	at := 5 // behind start, end, points, bad and partial
	for i, column := range q.columns {
		for range column.Shown {
			if q.measures[i].Kind != window.State {
				row[at] = sensible(row[at])
			}
			at++
		}
	}
	return row
}

// missing returns an error where points were read and none of them has a value of a measure.
func (q *windowQuery) missing(c *cli.Command) (err error) {
	for i := range q.measures {
		if !q.rollup {
			err = errors.Join(err, q.measures[i].missing(c, q.points.Load()))
		}
	}
	return err
}

// gridOf returns the grid of the flags.
func gridOf(c *cli.Command) (window.Grid, error) {
	grid, err := window.Parse(c.String("every"))
	if err != nil {
		return grid, usageError{fmt.Errorf("--every: %w", err)}
	}
	if grid = grid.In(zoneOf(c)); grid.Check() != nil {
		return grid, usageError{fmt.Errorf("--every: %w", grid.Check())}
	}
	return grid, nil
}

func (a *app) queryOf(c *cli.Command) (*windowQuery, error) {
	grid, err := gridOf(c)
	if err != nil {
		return nil, err
	}
	opts := window.Options{MaxGap: c.Duration("max-gap")}
	if err := opts.Gaps.UnmarshalText([]byte(c.String("gaps"))); err != nil {
		return nil, usageError{fmt.Errorf("--gaps: %w", err)}
	}
	names := c.StringSlice("aggregate")
	for _, name := range names {
		if !slices.Contains(aggregate.Names(), name) {
			return nil, usageError{fmt.Errorf("--aggregate is %q; want one of %s", name, strings.Join(aggregate.Names(), ", "))}
		}
	}
	texts := c.StringSlice("measure")
	if len(texts) == 0 {
		texts = []string{""}
	}
	q := &windowQuery{grid: grid, opts: opts}
	var of []window.Measure[dynamic.Payload]
	for _, text := range texts {
		m, err := a.measureWith(text)
		if err != nil {
			return nil, err
		}
		if m.names == nil {
			m.names = names
		}
		shown, kept := aggregate.Named(m.names)
		switch {
		case len(m.names) > 0:
			if kept |= window.Count; m.Kind == window.State && kept&window.Ends != 0 {
				kept |= window.Durations // first and last of a state are read with them
			}
		case m.Kind == window.State:
			shown, kept = aggregate.All, window.Count|window.Ends|window.Durations
		default:
			shown, kept = aggregate.All, 0
		}
		if m.Aggregates, err = m.Kind.Resolve(kept); err != nil {
			return nil, usageError{fmt.Errorf("--measure %s: %w", text, err)}
		}
		q.measures, q.columns, of = append(q.measures, m), q.columns.With(m.Name, m.Aggregates, shown), append(of, m.Measure)
	}
	if q.windows, err = window.New(grid, of, opts); err != nil {
		return nil, usageError{err}
	}
	return q, nil
}
