package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/conform"
)

// conform tests whether a service does what the SDK relies on.
func (a *app) conform() *cli.Command {
	return &cli.Command{
		Name: "conform", Usage: "test what the SDK relies on, on a table that it makes and removes", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "quick", Usage: "leave out the cases with large requests, and end within a minute and a quarter"},
			&cli.BoolFlag{Name: "engine", Usage: "test an embedded engine in memory instead of --project and --instance"},
			&cli.BoolFlag{Name: "remove-leftovers", Usage: "delete the tables that runs have left which were killed; other runs must not be under way"},
		},
		Action: a.runConform,
	}
}

func (a *app) runConform(ctx context.Context, c *cli.Command) (err error) {
	o := conform.Options{
		Project: a.project, Instance: a.instance, Table: a.table, AppProfile: a.profile, ConditionalAppProfile: a.conditionalProfile,
		Quick: c.Bool("quick"), RemoveLeftovers: c.Bool("remove-leftovers"),
	}
	if o.Table == os.Getenv("TIDEMARK_TABLE") { // that is a store's, which may not exist yet
		o.Table = ""
	}
	switch {
	case c.Args().Present():
		return usageError{errors.New("conform takes no arguments")}
	case a.form != "text" && a.form != "json":
		return usageError{errors.New("conform prints --output text or json")}
	case a.dir != "":
		return usageError{errors.New("conform does not open a store: give --project and --instance, or --engine for the embedded engine")}
	case c.Bool("engine"):
		dial, closeEngine, err := conform.Engine()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeEngine()) }()
		o.Project, o.Instance, o.Table, o.AppProfile, o.ConditionalAppProfile, o.Dial = "local", "engine", "", "", "", dial
	case o.Project == "" || o.Instance == "":
		return usageError{errors.New("conform needs --project and --instance, or --engine")}
	}
	shown := a.bar("", -1)
	o.Progress = func(done, _ int, last conform.Result) {
		shown.describe(last.Name)
		shown.set(int64(done))
	}
	stop := context.AfterFunc(ctx, func() {
		a.say("Interrupted: the run removes its table, in at most %v. Ctrl-C again ends it at once, and leaves the table; --remove-leftovers of the next run deletes it", conform.RemoveTimeout)
	})
	report, failed := conform.Run(ctx, o)
	stop()
	shown.end()
	if report == nil {
		return failed
	}
	err = a.print(report, func(w *tabwriter.Writer) { _ = report.WriteText(w) })
	if len(report.Leftovers) > 0 && !o.RemoveLeftovers {
		a.say("tables that other runs have left or still use: %s; --remove-leftovers deletes them", strings.Join(report.Leftovers, ", "))
	}
	if failed != nil || err != nil {
		return errors.Join(failed, err)
	}
	if len(report.Unmet()) > 0 {
		return errUnexpected
	}
	return nil
}
