package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// datasetsList prints a line per dataset. Damaged entries are errors behind the others.
func (a *app) datasetsList() *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the datasets, one a line", HideHelpCommand: true,
		Action: a.withStore(false, func(ctx context.Context, _ *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			out, err := a.rows("dataset", "key", "precision", "tags", "retention", "head", "rollups")
			if err != nil {
				return err
			}
			var damaged []error
			for d, err := range store.Datasets(ctx) {
				if err != nil {
					damaged = append(damaged, err)
					continue
				}
				of := dynamic.Describe(d)
				if err := out.add(of, of.Name, keyOf(of), of.Precision, strings.Join(of.Tags, " "), classesOf(of), headOf(of), rollupsOf(of)); err != nil {
					return err
				}
			}
			return out.end(joined(damaged))
		}),
	}
}

// joined returns the errors as one, on one line; nil for none.
func joined(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return fmt.Errorf("%w; and %d more", errs[0], len(errs)-1)
}

func (a *app) datasetsShow() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show what the catalogue says of a dataset", HideHelpCommand: true,
		Flags: []cli.Flag{&cli.StringFlag{Name: "dataset", Usage: "the `dataset`", Required: true}},
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			var damaged []error
			var names []string
			for d, err := range store.Datasets(ctx) {
				if err == nil {
					names = append(names, d.Name())
				}
				if err != nil {
					damaged = append(damaged, err)
				} else if d.Name() == c.String("dataset") {
					of := dynamic.Describe(d)
					return a.print(of, func(w *tabwriter.Writer) { describe(w, of) })
				}
			}
			if err := joined(damaged); err != nil {
				return fmt.Errorf("dataset %q is not among the entries that can be read: %w", c.String("dataset"), err)
			}
			return fmt.Errorf("dataset %q is not in the catalogue%s; %q prints those that are", c.String("dataset"), didYouMean(c.String("dataset"), names), "datasets list")
		}),
	}
}

// describe prints a dataset, one property a line.
func describe(w *tabwriter.Writer, d dynamic.Description) {
	fmt.Fprintf(w, "Dataset\t%s\nKey\t%s\nPrecision\t%s\nTags\t%s\n", d.Name, keyOf(d), d.Precision, strings.Join(d.Tags, " "))
	for _, c := range d.Classes {
		text := c.Policy
		if c.Offered {
			text += ", offered to tenants"
		}
		if c.RollupAge > 0 {
			text += ", rollups " + c.RollupAge.String()
		}
		fmt.Fprintf(w, "Class %s\t%s\n", c.Name, text)
	}
	var writes []string
	for _, of := range []struct {
		has  bool
		name string
	}{{d.FirstWins, "the first one wins"}, {d.Merge, "fields are merged"}, {d.Immutable != "", fmt.Sprintf("fields %s… never change", d.Immutable)}, {d.Identity, "points have an ID"}} {
		if of.has {
			writes = append(writes, of.name)
		}
	}
	fmt.Fprintf(w, "Writes\t%s\nSalts\t%s\nHead\t%s\n", orDash(strings.Join(writes, ", ")), orDash(number0(d.Salts)), orDash(headOf(d)))
	for _, r := range d.Rollups {
		from := r.Kind
		if r.From != "" {
			from += " from " + r.From
		}
		fmt.Fprintf(w, "Rollup %s\t%s in %s, %s, class %s: %s\n", r.Name, r.Every, r.Zone, from, r.Class.Name, r.Class.Policy)
		for _, m := range r.Measures {
			fmt.Fprintf(w, "  %s\t%s: %s\n", m.Name, m.Kind, strings.Join(m.Aggregates, " "))
		}
	}
}

// keyOf returns the key fields as the flag --key of advise takes them.
func keyOf(d dynamic.Description) string {
	fields := make([]string, len(d.Key))
	for i, f := range d.Key {
		if fields[i] = f.Name; f.Kind != "text" {
			fields[i] += ":" + f.Kind
		}
	}
	return strings.Join(fields, ",")
}

func classesOf(d dynamic.Description) string {
	classes := make([]string, len(d.Classes))
	for i, c := range d.Classes {
		classes[i] = c.Name
	}
	return strings.Join(classes, " ")
}

func headOf(d dynamic.Description) string {
	switch {
	case d.Head == nil:
		return ""
	case d.Head.Only:
		return strconv.Itoa(d.Head.Points) + " points, nothing else"
	case d.Head.Fields && d.Head.Points == 0:
		return "fields"
	case d.Head.Fields:
		return strconv.Itoa(d.Head.Points) + " points, fields"
	}
	return strconv.Itoa(d.Head.Points) + " points"
}

func rollupsOf(d dynamic.Description) string {
	rollups := make([]string, len(d.Rollups))
	for i, r := range d.Rollups {
		rollups[i] = r.Name
	}
	return strings.Join(rollups, " ")
}

func number0(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
