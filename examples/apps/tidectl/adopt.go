package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"cloud.google.com/go/bigtable"
	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/adopt"
	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/tsdb"
)

var (
	errUnfitRows = errors.New("a copy would end: something is no point of the mapping and not under skip")
	errDifferent = errors.New("the dataset differs from the foreign table")
)

// adopt takes over the tables of other programs.
func (a *app) adopt() *cli.Command {
	profile := &cli.StringFlag{Name: "foreign-app-profile", Usage: "read the foreign table through this app `profile`, instead of that of the mapping"}
	return &cli.Command{
		Name: "adopt", Usage: "copy a table of another program into a dataset", HideHelpCommand: true,
		Commands: []*cli.Command{
			{
				Name: "describe", Usage: "draft a mapping file from a sample of a table", ArgsUsage: "TABLE", HideHelpCommand: true,
				Flags:  []cli.Flag{profile},
				Action: a.describeForeign,
			},
			{
				Name: "check", Usage: "report what a table has, and what does not fit", ArgsUsage: "FILE", HideHelpCommand: true,
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "rows", Usage: "read this `number` of rows, spread over the table; -1 for all", Value: 100_000}, profile,
				},
				Action: a.withForeign(false, a.checkForeign),
			},
			{
				Name: "copy", Usage: "copy, or continue, or catch up with what was written since", ArgsUsage: "FILE", HideHelpCommand: true,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "state", Usage: "keep the progress in this `file`", Required: true},
					&cli.IntFlag{Name: "rate", Usage: "write at most this `number` of points a second", Value: 10_000},
					&cli.IntFlag{Name: "concurrency", Usage: "copy this `number` of ranges at the same time", Value: 4},
					&cli.DurationFlag{Name: "overlap", Usage: "read back this `time` before the last pass; 1h with cells: written, else 24h"},
					&cli.DurationFlag{Name: "follow", Usage: "catch up again and again, with this `time` between two passes, until Ctrl-C"}, profile,
				},
				Action: a.withForeign(true, a.copyForeign),
			},
			{
				Name: "verify", Usage: "compare the dataset with the foreign table by counts and checksums", ArgsUsage: "FILE", HideHelpCommand: true,
				Flags:  []cli.Flag{timeFlag("before", "only points before this `time`"), profile},
				Action: a.withForeign(true, a.verifyForeign),
			},
		},
	}
}

// describeForeign drafts a mapping.
func (a *app) describeForeign(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return usageError{fmt.Errorf("%s has %d arguments, and takes a table", c.FullName(), c.Args().Len())}
	}
	table, end, err := a.foreignTable(ctx, a.project, a.instance, c.Args().First(), c.String("foreign-app-profile"))
	if err != nil {
		return err
	}
	defer end()
	text, err := adopt.Describe(ctx, table, c.Args().First())
	if err == nil {
		_, err = a.std.out.Write(text)
	}
	return err
}

// withForeign returns an action on the mapping file that is the only argument. The store is nil if none is named and
// none is needed.
func (a *app) withForeign(needsStore bool, act func(context.Context, *cli.Command, *adopt.Source, *tsdb.Store) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) (err error) {
		if c.Args().Len() != 1 {
			return usageError{fmt.Errorf("%s has %d arguments, and takes a mapping file", c.FullName(), c.Args().Len())}
		}
		if a.form != "text" && a.form != "json" {
			return usageError{fmt.Errorf("--output is %q; want text or json", a.form)}
		}
		name := c.Args().First()
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		m, err := adopt.Parse(text)
		if err != nil {
			return fmt.Errorf("%s has mistakes:\n%w", name, err)
		}
		project, instance, table, profile := m.Source()
		if project == "" {
			project = a.project
		}
		if instance == "" {
			instance = a.instance
		}
		if c.IsSet("foreign-app-profile") {
			profile = c.String("foreign-app-profile")
		}
		foreign, end, err := a.foreignTable(ctx, project, instance, table, profile)
		if err != nil {
			return err
		}
		defer end()
		source, err := adopt.Open(foreign, m)
		if err != nil {
			return err
		}
		var store *tsdb.Store
		if needsStore || a.dir != "" || a.table != "" {
			if store, err = a.open(ctx, c.Name == "copy"); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, store.Close()) }()
		}
		return act(ctx, c, source, store)
	}
}

// foreignTable opens a table that is no store's, and returns a function that closes the connection.
func (a *app) foreignTable(ctx context.Context, project, instance, table, profile string) (bigtable.TableAPI, func(), error) {
	if project == "" || instance == "" {
		return nil, nil, usageError{errors.New("no foreign table: give --project and --instance, or name them in the mapping file")}
	}
	opts, err := connection(tsdb.DialOptions()...)
	if err != nil {
		return nil, nil, err
	}
	conf := tsdb.ClientConfig()
	conf.AppProfile, conf.MetricsProvider = profile, bigtable.NoopMetricsProvider{}
	client, err := bigtable.NewClientWithConfig(ctx, project, instance, conf, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s/%s: %w", project, instance, err)
	}
	return client.OpenTable(table), func() { _ = client.Close() }, nil
}

func (a *app) checkForeign(ctx context.Context, c *cli.Command, source *adopt.Source, store *tsdb.Store) error {
	report, err := source.Check(ctx, store, adopt.CheckOptions{Rows: c.Int("rows")})
	if report == nil {
		return err
	}
	printed := a.print(report, func(w *tabwriter.Writer) {
		whole := "a sample"
		if report.Whole {
			whole = "the whole table"
		}
		fmt.Fprintf(w, "Rows\t%d, %s\nPoints\t%d of %d entities of %d tenants\n", report.Rows, whole, report.Points, report.Entities, report.Tenants)
		if report.Points > 0 {
			fmt.Fprintf(w, "Times\t%s to %s\nPayloads\t%d bytes on average, at most %d\n", aggregate.Instant(report.Oldest), aggregate.Instant(report.Newest), report.Bytes/report.Points, report.Largest)
		}
		for _, u := range report.Unfit {
			does := "a copy ends there"
			if u.Skip {
				does = "skipped"
			}
			fmt.Fprintf(w, "Unfit\t%s: %d, %s\n", u.Reason, u.Count, does)
			for _, x := range u.Examples {
				fmt.Fprintf(w, "\t  %s: %s\n", x.Key, x.Text)
			}
		}
	})
	switch {
	case err != nil || printed != nil:
		return errors.Join(err, printed)
	case report.Refused():
		return errUnfitRows
	}
	return nil
}

func (a *app) copyForeign(ctx context.Context, c *cli.Command, source *adopt.Source, store *tsdb.Store) error {
	if every := c.Duration("follow"); c.IsSet("follow") && every <= 0 {
		return usageError{fmt.Errorf("--follow is %v; want a time above 0", every)}
	}
	name := c.String("state")
	state, err := readState(name)
	if err != nil {
		return err
	}
	for {
		shown := a.bar("Copying", -1)
		state, err = source.Copy(ctx, store, adopt.CopyOptions{
			State: state, Rate: c.Int("rate"), Concurrency: c.Int("concurrency"), Overlap: c.Duration("overlap"),
			Save: func(s adopt.State) error {
				shown.describe(fmt.Sprintf("Copying, pass %d", s.Pass))
				shown.of(pointsOfCopy(s))
				shown.set(s.Points)
				return saveState(name, s)
			},
		})
		shown.end()
		if err != nil {
			break
		}
		if err := a.printState(state); err != nil || !c.IsSet("follow") {
			return err
		}
		if ctxerr.Wait(ctx, c.Duration("follow")) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		a.say("The same command continues")
		return errInterrupted
	}
	if errors.Is(err, adopt.ErrUnfit) {
		return fmt.Errorf("%w\ntidectl adopt check counts all of them; skip in the mapping file leaves them out, from a new state on", err)
	}
	return err
}

// pointsOfCopy estimates how many points a pass writes, by how many of its ranges are done; -1 before the first is.
// A range that was begun counts as half.
func pointsOfCopy(s adopt.State) int64 {
	done := float64(s.Done())
	if done == 0 || s.Points == 0 {
		return -1
	}
	for _, r := range s.Ranges {
		if !r.Done && r.After != nil {
			done += 0.5
		}
	}
	return max(s.Points, int64(float64(s.Points)*float64(len(s.Ranges))/done))
}

func (a *app) printState(s adopt.State) error {
	return a.print(s, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "Pass %d\t%d points from %d rows\n", s.Pass, s.Points, s.Rows)
		for _, reason := range slices.Sorted(maps.Keys(s.Skipped)) {
			fmt.Fprintf(w, "Skipped\t%s: %d\n", reason, s.Skipped[reason])
		}
	})
}

func (a *app) verifyForeign(ctx context.Context, c *cli.Command, source *adopt.Source, store *tsdb.Store) error {
	v, err := source.Verify(ctx, store, adopt.VerifyOptions{Before: timeOf(c, "before")})
	if err != nil {
		return err
	}
	err = a.print(v, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "Foreign table\t%d points\nDataset\t%d points\nRanges\t%d, of which %d differ\n", v.Source, v.Stored, v.Ranges, len(v.Different))
		for _, reason := range slices.Sorted(maps.Keys(v.Skipped)) {
			fmt.Fprintf(w, "Skipped\t%s: %d\n", reason, v.Skipped[reason])
		}
		if v.Refused > 0 {
			fmt.Fprintf(w, "Refused\t%d of them, which the mapping does not skip: a copy ends there\n", v.Refused)
		}
		if v.Expiring > 0 {
			fmt.Fprintf(w, "Not compared\t%d points that expire within an hour\n", v.Expiring)
		}
		for _, d := range v.Different {
			fmt.Fprintf(w, "Differs\tfrom %q: %d points, %d in the dataset\n", d.Start, d.Source, d.Stored)
			for _, x := range d.Examples {
				fmt.Fprintf(w, "\t  %s\n", x)
			}
		}
	})
	if err == nil && !v.Same() {
		err = errDifferent
	}
	return err
}

// readState reads the progress of a copy; that of a new one if there is no file.
func readState(name string) (state adopt.State, err error) {
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state, nil
	case err != nil:
		return state, err
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return state, fmt.Errorf("%s is no state of a copy: %w", name, err)
	}
	return state, nil
}

// saveState replaces the file with the progress as a whole, so that a crash leaves the state before or the one after,
// also if two copies use one file.
func saveState(name string, state any) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.new") // with mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Clean(name))
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
