package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/keyadvice"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

const pointArgs = "DATASET TENANT FIELD=VALUE..."

// get prints points of an entity.
func (a *app) get() *cli.Command {
	return &cli.Command{
		Name: "get", Usage: "print points of an entity, newest first", ArgsUsage: pointArgs, HideHelpCommand: true,
		Flags: []cli.Flag{
			timeFlag("from", "only points from this `time` on"), timeFlag("to", "only points before this `time`"),
			&cli.IntFlag{Name: "limit", Usage: "how `many` points at most", Value: 100},
		},
		Action: a.withEntity(func(ctx context.Context, c *cli.Command, v *dynamic.View, e tsdb.Entity) error {
			left := c.Int("limit")
			if left < 1 {
				return usageError{fmt.Errorf("--limit is %d; want 1 or more", left)}
			}
			out, err := a.points(v)
			if err != nil {
				return err
			}
			for p, err := range v.Points(ctx, e, interval(c)) {
				if err != nil {
					return out.end(err)
				}
				if left--; left < 0 {
					a.say("There are more points; --limit shows more")
					break
				}
				if err := out.add(p); err != nil {
					return err
				}
			}
			return out.end(nil)
		}),
	}
}

// latest prints the newest point of an entity, or of some entities of a dataset.
func (a *app) latest() *cli.Command {
	return &cli.Command{
		Name: "latest", Usage: "print the newest point of an entity, of those with these first key fields, or without fields of some entities",
		ArgsUsage: prefixArgs, HideHelpCommand: true,
		Flags: []cli.Flag{&cli.IntFlag{Name: "entities", Usage: "of how `many` entities at most; without fields they are picked at random where there are more", Value: 100}},
		Action: a.withView(func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID, v *dynamic.View) error {
			p, whole, err := prefixOf(c, v)
			most := c.Int("entities")
			switch {
			case err != nil:
				return err
			case most < 1:
				return usageError{fmt.Errorf("--entities is %d; want 1 or more", most)}
			case whole:
				return a.latestOf(ctx, v, tsdb.NewEntity(p.Parts()...))
			case c.Args().Len() > 2:
				return a.latestUnder(ctx, v, p, most)
			}
			_, sample, err := keyadvice.TakeSample(ctx, store, described(v).Name, id, most)
			if err != nil {
				return err
			}
			var entities []tsdb.Entity
			for _, s := range sample.Entities {
				entities = append(entities, s.Entity)
			}
			slices.SortFunc(entities, tsdb.Entity.Compare)
			return a.latestOf(ctx, v, entities...)
		}),
	}
}

// latestOf prints the newest points of entities.
func (a *app) latestOf(ctx context.Context, v *dynamic.View, entities ...tsdb.Entity) error {
	out, err := a.points(v)
	if err != nil {
		return err
	}
	for _, e := range entities {
		p, err := newest(ctx, v, e)
		if len(entities) > 1 && errors.Is(err, tsdb.ErrNotFound) {
			continue // deleted or expired meanwhile
		}
		if err != nil {
			return out.end(err)
		}
		if err := out.add(p); err != nil {
			return err
		}
	}
	return out.end(nil)
}

// latestUnder prints the newest points of the first entities below a prefix.
func (a *app) latestUnder(ctx context.Context, v *dynamic.View, below tsdb.Prefix, most int) error {
	out, err := a.points(v)
	if err != nil {
		return err
	}
	for p, err := range v.Repository().Under(below).Latest(ctx) {
		point, err := pointOf(p, err)
		if err != nil {
			return out.end(err)
		}
		if out.printed == most {
			a.say("There are more entities; --entities shows more")
			break
		}
		if err := out.add(point); err != nil {
			return err
		}
	}
	if out.printed == 0 {
		a.say("There is no entity with points below %s in dataset %s", below, described(v).Name)
	}
	return out.end(nil)
}

// pointOf returns a point of a repository as a view has it. One whose payload cannot be read has its error.
func pointOf(p tsdb.Point[dynamic.Payload], err error) (dynamic.Point, error) {
	out := dynamic.Point{Entity: p.Entity, Time: p.Time, ID: p.ID, Tag: p.Value.Tag, Payload: p.Value.Data}
	if bad, one := errors.AsType[*tsdb.PointError](err); one {
		out.Err, err = bad.Err, nil
	}
	return out, err
}

// watch prints the points of an entity as they come.
func (a *app) watch() *cli.Command {
	return &cli.Command{
		Name: "watch", Usage: "print new points of an entity as they come to a table, an emulator or a folder that another program has open, until Ctrl-C",
		ArgsUsage: pointArgs, HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "every", Usage: "how often to look, 100ms to 1h", Value: time.Second},
			timeFlag("from", "print points from this `time` on, too"),
		},
		Action: a.withEntity(func(ctx context.Context, c *cli.Command, v *dynamic.View, e tsdb.Entity) error {
			every := c.Duration("every")
			if every < 100*time.Millisecond || every > time.Hour {
				return usageError{fmt.Errorf("--every is %v; want 100ms to 1h", every)}
			}
			if a.dir != "" && !a.attached {
				if err := a.stored(ctx, c, v, e); err != nil {
					return err
				}
				return errNothingComes
			}
			return a.follow(ctx, v, e, tsdb.FollowOptions{Since: timeOf(c, "from"), Interval: every})
		}),
	}
}

// stored prints the points of an entity from the time of --from on, the oldest first.
func (a *app) stored(ctx context.Context, c *cli.Command, v *dynamic.View, e tsdb.Entity) error {
	if !c.IsSet("from") {
		return nil
	}
	out, err := a.points(v)
	if err != nil {
		return err
	}
	for p, err := range v.Repository().Range(ctx, e, tsdb.Since(timeOf(c, "from")), tsdb.OldestFirst) {
		point, err := pointOf(p, err)
		if err != nil {
			return out.end(err)
		}
		if err := out.add(point); err != nil {
			return err
		}
	}
	return out.end(nil)
}

// follow prints the points of an entity as they arrive, until ctx ends.
func (a *app) follow(ctx context.Context, v *dynamic.View, e tsdb.Entity, opts tsdb.FollowOptions) error {
	f, err := v.Repository().Follow(ctx, e, opts)
	if err != nil {
		return err
	}
	defer f.Close()
	out, err := a.points(v)
	if err != nil {
		return err
	}
	for p, err := range f.Points(ctx) {
		if ctx.Err() != nil { // Ctrl-C
			return nil
		}
		point, err := pointOf(p, err)
		if err != nil {
			return err
		}
		if err := out.add(point); err != nil {
			return err
		}
	}
	return nil
}

// errNothingComes ends watch on a folder after the points of --from, if no other program has it open.
var errNothingComes = errors.New("nothing more comes: no other program has the folder open; " +
	"use get, or watch a table, an emulator or the folder of a program that runs")

// withView is withTenant for a command on a tenant's points of a dataset: the arguments are the dataset, the tenant and
// fields.
func (a *app) withView(act func(context.Context, *cli.Command, *tsdb.Store, tenant.ID, *dynamic.View) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) (err error) {
		switch asCSV := a.form == "csv"; {
		case asCSV && (c.Name == "watch" || c.Name == "put" || c.Name == "delete"):
			return usageError{fmt.Errorf("--output is csv; want text or json for %s", c.Name)}
		case a.form == "parquet" && c.Name != "range":
			return usageError{fmt.Errorf("--output is parquet, which is for range; for a whole dataset there is tenants export")}
		case a.form == "parquet" && terminal(a.std.out):
			return usageError{fmt.Errorf("--output is parquet, which a terminal does not show: redirect it to a file")}
		case a.form == "parquet":
		case !asCSV && a.form != "text" && a.form != "json":
			return usageError{fmt.Errorf("--output is %q; want text, json or csv", a.form)}
		}
		if c.Args().Len() < 2 {
			return usageError{fmt.Errorf("%s takes %s", c.FullName(), c.ArgsUsage)}
		}
		id, err := tenant.Parse(c.Args().Get(1))
		if err != nil {
			return usageError{err}
		}
		store, err := a.open(ctx, false)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		v, err := a.view(ctx, store, id, c.Args().First())
		if err != nil {
			return err
		}
		if c.Name != "put" { // which may be a tenant's first point
			if err := existing(ctx, store, id); err != nil {
				return err
			}
		}
		return act(ctx, c, store, id, v)
	}
}

// view opens a dataset. For a name that the catalogue does not have, the error names the one that is most like it.
func (a *app) view(ctx context.Context, store *tsdb.Store, id tenant.ID, dataset string) (*dynamic.View, error) {
	v, err := dynamic.Open(ctx, store, id, dataset)
	if !errors.Is(err, tsdb.ErrInvalid) {
		return v, err
	}
	var names []string
	for d, derr := range store.Datasets(ctx) {
		if derr != nil {
			continue
		}
		if d.Name() == dataset {
			return v, err // its entry cannot be read
		}
		names = append(names, d.Name())
	}
	return nil, fmt.Errorf("dataset %q is not in the catalogue%s; %q prints those that are", dataset, didYouMean(dataset, names), "datasets list")
}

// withEntity is withView for a command on one entity.
func (a *app) withEntity(act func(context.Context, *cli.Command, *dynamic.View, tsdb.Entity) error) cli.ActionFunc {
	return a.withView(func(ctx context.Context, c *cli.Command, _ *tsdb.Store, _ tenant.ID, v *dynamic.View) error {
		e, err := a.knownEntity(ctx, c, v)
		if err != nil {
			return err
		}
		return act(ctx, c, v, e)
	})
}

// fieldsOf returns the values of the key fields that the arguments name.
func fieldsOf(c *cli.Command, v *dynamic.View) (map[string]string, error) {
	values := map[string]string{}
	for _, arg := range c.Args().Slice()[2:] {
		name, value, ok := strings.Cut(arg, "=")
		if _, twice := values[name]; !ok || twice {
			return nil, usageError{fmt.Errorf("%q is not FIELD=VALUE with each field once; the fields are %s", arg, strings.Join(keyFieldsOf(v), ", "))}
		}
		if key := keyFieldsOf(v); !slices.Contains(key, name) {
			return nil, usageError{fmt.Errorf("dataset %s has no key field %q%s; the fields are %s", described(v).Name, name, didYouMean(name, key), strings.Join(key, ", "))}
		}
		values[name] = value
	}
	return values, nil
}

// knownEntity is entityOf for a command that reads. It says so if the entity has no points.
func (a *app) knownEntity(ctx context.Context, c *cli.Command, v *dynamic.View) (tsdb.Entity, error) {
	e, err := entityOf(c, v)
	if err != nil {
		return e, err
	}
	if _, err = v.Repository().Latest(ctx, e); errors.Is(err, tsdb.ErrNotFound) {
		a.say("%s has no points in dataset %s; %q prints some that have", e, described(v).Name, "latest "+strings.Join(c.Args().Slice()[:2], " "))
		err = nil
	}
	return e, err
}

// entityOf returns the entity that the arguments name.
func entityOf(c *cli.Command, v *dynamic.View) (tsdb.Entity, error) {
	values, err := fieldsOf(c, v)
	if err != nil {
		return tsdb.Entity{}, err
	}
	return v.Entity(values)
}

// newest returns the newest point of an entity.
func newest(ctx context.Context, v *dynamic.View, e tsdb.Entity) (dynamic.Point, error) {
	for p, err := range v.Points(ctx, e, tsdb.AllTime()) {
		return p, err
	}
	return dynamic.Point{}, fmt.Errorf("%w: entity %s", tsdb.ErrNotFound, e)
}

// described returns the dataset of a view as data.
func described(v *dynamic.View) dynamic.Description { return dynamic.Describe(v.Repository().Schema()) }

// keyFieldsOf returns the names of a dataset's key fields.
func keyFieldsOf(v *dynamic.View) (names []string) {
	for _, f := range described(v).Key {
		names = append(names, f.Name)
	}
	return names
}

// precisions are the precisions of datasets by their names.
var precisions = map[string]tsdb.Precision{"ns": tsdb.Nanoseconds, "us": tsdb.Microseconds, "ms": tsdb.Milliseconds}
