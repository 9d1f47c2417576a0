package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
)

// retention is the group of commands for retention policies.
func (a *app) retention() *cli.Command {
	return &cli.Command{
		Name:  "retention",
		Usage: "plan and apply retention policies, find changes made elsewhere, and forecast storage",
		Commands: []*cli.Command{
			a.retentionPlan(), a.retentionApply(), a.retentionDrift(), a.retentionForecast(),
		},
	}
}

func setFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "set", Usage: "another policy for a `class`, as d90=maxage=30d; may be repeated"}
}

func detailedFlag() cli.Flag {
	return &cli.BoolFlag{Name: "detailed-exitcode", Usage: fmt.Sprintf("exit with %d if there are changes", exitChanges)}
}

func (a *app) retentionPlan() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "show what the policies of the catalogue, or of --set, would change; changes nothing", HideHelpCommand: true,
		Flags:                     []cli.Flag{setFlag(), detailedFlag(), &cli.StringFlag{Name: "out", Usage: "write the plan to a new `file`, for apply"}},
		DisableSliceFlagSeparator: true,
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			p, err := planned(ctx, c, store)
			if err != nil {
				return err
			}
			if name := c.String("out"); name != "" {
				if err := keep(p, name); err != nil {
					return err
				}
			}
			if err := a.print(p, func(w *tabwriter.Writer) { fmt.Fprint(w, p) }); err != nil {
				return err
			}
			if c.Bool("detailed-exitcode") && !p.Empty() {
				return errChanges
			}
			return nil
		}),
	}
}

func (a *app) retentionDrift() *cli.Command {
	return &cli.Command{
		Name: "drift", Usage: "show how the table differs from the catalogue; changes nothing", HideHelpCommand: true,
		Flags: []cli.Flag{detailedFlag()},
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			p, err := retention.NewPlanFor(ctx, store, nil)
			if err != nil {
				return err
			}
			if err := a.print(p, func(w *tabwriter.Writer) { fmt.Fprint(w, p) }); err != nil {
				return err
			}
			if c.Bool("detailed-exitcode") && p.Drifted() {
				return errChanges
			}
			return nil
		}),
	}
}

func (a *app) retentionApply() *cli.Command {
	return &cli.Command{
		Name: "apply", Usage: "apply a plan; without --plan it makes one, and asks first", HideHelpCommand: true,
		Flags: []cli.Flag{
			setFlag(),
			&cli.StringFlag{Name: "plan", Usage: "the `file` of a plan"},
			&cli.StringSliceFlag{Name: "allow", Usage: "a `class` whose data may be deleted; may be repeated"},
			&cli.BoolFlag{Name: "ignore-warnings", Usage: "skip the service's own checks of replicated tables"},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
		},
		DisableSliceFlagSeparator: true,
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			p, err := a.approved(ctx, c, store)
			if err != nil {
				return err
			}
			r, err := p.Apply(ctx, store, retention.ApplyOptions{Allow: c.StringSlice("allow"), IgnoreWarnings: c.Bool("ignore-warnings")})
			if err != nil && len(r.Applied) > 0 {
				a.say("%v", r)
			}
			if err != nil && ctx.Err() != nil {
				return fmt.Errorf("%w: the same command goes on", errInterrupted)
			}
			if err != nil {
				return err
			}
			return a.print(r, func(w *tabwriter.Writer) { fmt.Fprint(w, r) })
		}),
	}
}

// approved returns the plan to apply: the one of --plan, or a new one that the user has confirmed.
func (a *app) approved(ctx context.Context, c *cli.Command, store *tsdb.Store) (*retention.Plan, error) {
	if name := c.String("plan"); name != "" {
		if c.IsSet("set") {
			return nil, usageError{errors.New("--plan cannot be combined with --set: a plan already has its policies")}
		}
		return kept(name)
	}
	p, err := planned(ctx, c, store)
	if err != nil || p.Empty() {
		return p, err
	}
	a.say("%v", p)
	return p, a.confirm(ctx, c.Bool("yes"), "This changes how long the data of all tenants is kept.", "apply")
}

// planned makes a plan by the catalogue, with the policies of --set.
func planned(ctx context.Context, c *cli.Command, store *tsdb.Store) (*retention.Plan, error) {
	classes, err := classesSet(c)
	if err != nil {
		return nil, err
	}
	return retention.NewPlanFor(ctx, store, classes)
}

// classesSet returns the policies of --set by their classes.
func classesSet(c *cli.Command) (map[string]gc.Policy, error) {
	classes := map[string]gc.Policy{}
	for _, set := range c.StringSlice("set") {
		name, text, ok := strings.Cut(set, "=")
		if _, twice := classes[name]; !ok || name == "" || twice {
			return nil, usageError{fmt.Errorf("--set %s: want CLASS=POLICY, each class once", set)}
		}
		p, err := gc.Parse(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--set %s: %w", name, err)}
		}
		classes[name] = p
	}
	return classes, nil
}

// keep writes a plan to a new file.
func keep(p *retention.Plan, name string) error {
	doc, err := p.MarshalJSON()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	_, err = f.Write(append(doc, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the plan: %w", errors.Join(err, os.Remove(name)))
	}
	return nil
}

// kept reads a plan from a file.
func kept(name string) (*retention.Plan, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := retention.ReadPlan(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}
