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

// retention is the group of commands on how long data is kept.
func (a *app) retention() *cli.Command {
	return &cli.Command{
		Name:  "retention",
		Usage: "how long data is kept: what would change, the change itself, what was changed elsewhere, and what will be held",
		Commands: []*cli.Command{
			a.retentionPlan(), a.retentionApply(), a.retentionDrift(), a.retentionForecast(),
		},
	}
}

func setFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "set", Usage: "another policy for a `class`, as d90=maxage=30d; as often as needed"}
}

func detailedFlag() cli.Flag {
	return &cli.BoolFlag{Name: "detailed-exitcode", Usage: fmt.Sprintf("end with %d where there is anything to do", exitChanges)}
}

func (a *app) retentionPlan() *cli.Command {
	return &cli.Command{
		Name: "plan", Usage: "show what keeping data by the catalogue, or by --set, would change; changes nothing", HideHelpCommand: true,
		Flags:                     []cli.Flag{setFlag(), detailedFlag(), &cli.StringFlag{Name: "out", Usage: "keep the plan in a `file`, which must not be there, for apply"}},
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
		Name: "drift", Usage: "show what was changed elsewhere, against the catalogue; changes nothing", HideHelpCommand: true,
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
		Name: "apply", Usage: "make the changes of a plan; asks first, where it makes the plan itself", HideHelpCommand: true,
		Flags: []cli.Flag{
			setFlag(),
			&cli.StringFlag{Name: "plan", Usage: "the `file` of a plan that was kept"},
			&cli.StringSliceFlag{Name: "allow", Usage: "the `class` whose data may be deleted; as often as needed"},
			&cli.BoolFlag{Name: "ignore-warnings", Usage: "go past the service's own checks of replicated tables"},
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

// approved returns the plan that is to be applied: one that was kept, or a new one that is shown and confirmed.
func (a *app) approved(ctx context.Context, c *cli.Command, store *tsdb.Store) (*retention.Plan, error) {
	if name := c.String("plan"); name != "" {
		if c.IsSet("set") {
			return nil, usageError{errors.New("--plan has its policies, so --set cannot be beside it")}
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
			return nil, usageError{fmt.Errorf("--set %s: it has to be CLASS=POLICY, each class once", set)}
		}
		p, err := gc.Parse(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--set %s: %w", name, err)}
		}
		classes[name] = p
	}
	return classes, nil
}

// keep writes a plan to a file that is not there.
func keep(p *retention.Plan, name string) error {
	doc, err := p.MarshalJSON()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	_, err = f.Write(append(doc, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep the plan: %w", errors.Join(err, os.Remove(name)))
	}
	return nil
}

// kept reads a plan that was kept.
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
