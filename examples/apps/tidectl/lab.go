package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/lab"
	"github.com/tidemark-go/tidemark/tsdb"
)

var (
	errUnexpected = errors.New("not as expected")
	errIncomplete = errors.New("the load was not executed as a whole, so the figures are of a part of it")
)

// lab compares row keys before a table exists.
func (a *app) lab() *cli.Command {
	heatmaps := &cli.StringFlag{Name: "heatmaps", Usage: "write a recording for each candidate to this `folder`, for tidectl heatmap"}
	run := []cli.Flag{
		&cli.StringSliceFlag{Name: "candidate", Usage: "only the candidate of this `name`; may be repeated"},
		&cli.FloatFlag{Name: "scale", Usage: "the `part` of entities and queries that is executed", Value: 0.01},
		&cli.FloatFlag{Name: "speed", Usage: "how many `times` as fast the load is executed", Value: 60},
		&cli.IntFlag{Name: "concurrency", Usage: "how many `requests` are under way", Value: 16},
		&cli.DurationFlag{Name: "max-time", Usage: "end each candidate after this `time`, and report what was done; 10m by default"},
		&cli.BoolFlag{Name: "cloud", Usage: "run on scratch tables of --project and --instance, which are made and removed"},
		heatmaps,
	}
	return &cli.Command{
		Name: "lab", Usage: "compare row keys before a table exists", HideHelpCommand: true,
		Commands: []*cli.Command{
			{
				Name: "init", Usage: "write a file to begin with", ArgsUsage: "FILE", HideHelpCommand: true,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "workload", Usage: "a shipped workload: " + fmt.Sprint(lab.Workloads())},
				},
				Action: a.initLab,
			},
			{
				Name: "check", Usage: "explain each mistake of a file", ArgsUsage: "FILE", HideHelpCommand: true,
				Action: func(_ context.Context, c *cli.Command) error {
					plan, err := labPlan(c)
					if err == nil {
						fmt.Fprintf(a.std.out, "%s has no mistakes: %d candidates\n", c.Args().First(), len(plan.Candidates()))
					}
					return err
				},
			},
			{
				Name: "run", Usage: "execute the load for each candidate, and count", ArgsUsage: "FILE", HideHelpCommand: true,
				Flags: run, Action: a.labReport((*lab.Plan).Run),
			},
			{
				Name: "simulate", Usage: "compute the whole load with a model of tablets and nodes, and rank the candidates", ArgsUsage: "FILE", HideHelpCommand: true,
				Flags:  []cli.Flag{heatmaps},
				Action: a.labReport(func(p *lab.Plan, ctx context.Context, _ lab.RunOptions) (*lab.Report, error) { return p.Simulate(ctx) }),
			},
			{
				Name: "compare", Usage: "run and simulate, and show the candidates side by side", ArgsUsage: "FILE", HideHelpCommand: true,
				Flags: run, Action: a.labReport((*lab.Plan).Compare),
			},
		},
	}
}

// labPlan reads the file that is the only argument.
func labPlan(c *cli.Command) (*lab.Plan, error) {
	if c.Args().Len() != 1 {
		return nil, usageError{fmt.Errorf("%s has %d arguments, and takes a file", c.FullName(), c.Args().Len())}
	}
	name := c.Args().First()
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	plan, err := lab.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s has mistakes:\n%w", name, err)
	}
	return plan, nil
}

func (a *app) initLab(_ context.Context, c *cli.Command) (err error) {
	if c.Args().Len() != 1 {
		return usageError{fmt.Errorf("%s has %d arguments, and takes the name of the new file", c.FullName(), c.Args().Len())}
	}
	text := lab.Template()
	if c.IsSet("workload") {
		if text, err = lab.Workload(c.String("workload")); err != nil {
			return usageError{err}
		}
	}
	file, err := os.OpenFile(c.Args().First(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err // also where there is a file, which may be a user's work
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// runOptions are those of a command line.
func (a *app) runOptions(c *cli.Command) (lab.RunOptions, func(), error) {
	o := lab.RunOptions{
		Candidates: c.StringSlice("candidate"), Scale: c.Float("scale"), Speed: c.Float("speed"), Concurrency: c.Int("concurrency"), MaxTime: c.Duration("max-time"),
	}
	if c.Bool("cloud") {
		if a.project == "" || a.instance == "" {
			return o, nil, usageError{errors.New("--cloud needs --project and --instance")}
		}
		o.Cloud = &tsdb.Config{Project: a.project, Instance: a.instance, AppProfile: a.profile}
	}
	shown := a.bar("", 1000)
	o.Progress = func(p lab.Progress) {
		shown.describe(fmt.Sprintf("%s: %s, %d points, %d queries", p.Candidate, p.Part, p.Points, p.Queries))
		shown.set(int64(p.Done * 1000))
	}
	return o, shown.end, nil
}

// labReport returns the action of a command that makes a report.
func (a *app) labReport(do func(*lab.Plan, context.Context, lab.RunOptions) (*lab.Report, error)) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		if a.form != "text" && a.form != "json" {
			return usageError{fmt.Errorf("--output is %q; want text or json", a.form)}
		}
		plan, err := labPlan(c)
		if err != nil {
			return err
		}
		o, done, err := a.runOptions(c)
		if err != nil {
			return err
		}
		report, err := do(plan, ctx, o)
		done()
		return a.finishLab(c, report, err)
	}
}

// finishLab prints what there is of a report, also after an error.
func (a *app) finishLab(c *cli.Command, report *lab.Report, failed error) error {
	if report == nil {
		return failed
	}
	unmet, failures := report.Unmet(), report.Failures()
	err := a.print(struct {
		*lab.Report
		Failures []string `json:"failures"`
		Unmet    []string `json:"unmet"`
	}{report, failures, unmet}, func(w *tabwriter.Writer) {
		_ = report.WriteText(w)
		for _, f := range failures {
			fmt.Fprintln(w, "failed: "+strings.Trim(strconv.Quote(f), `"`)) // errors may have bytes that a terminal obeys
		}
		for _, u := range unmet {
			fmt.Fprintln(w, "not as expected: "+u)
		}
	})
	if dir := c.String("heatmaps"); dir != "" {
		err = errors.Join(err, saveHeatmaps(dir, report))
	}
	switch {
	case failed != nil || err != nil:
		return errors.Join(failed, err)
	case len(failures) > 0:
		return errIncomplete
	case len(unmet) > 0:
		return errUnexpected
	}
	return nil
}

func saveHeatmaps(dir string, report *lab.Report) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i, c := range report.Candidates {
		if c.Measured != nil {
			if err := c.Measured.Heatmap.Save(filepath.Join(dir, fmt.Sprintf("%d.heat", i+1))); err != nil {
				return err
			}
		}
		if c.Simulated != nil {
			if err := c.Simulated.Heatmap.Save(filepath.Join(dir, fmt.Sprintf("%d-simulated.heat", i+1))); err != nil {
				return err
			}
		}
	}
	return nil
}
