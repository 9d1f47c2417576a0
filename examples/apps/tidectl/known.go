package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// knownFields is the fields of a tenant's dataset, as they are printed.
type knownFields struct {
	Fields  []knownField `json:"fields"`
	LeftOut int          `json:"left_out,omitempty"`
}

type knownField struct {
	Name  string   `json:"name"`
	Kinds []string `json:"kinds"`
	First string   `json:"first,omitempty"` // days
	Last  string   `json:"last,omitempty"`
}

// fields prints the fields that a tenant's points of a dataset have.
func (a *app) fields() *cli.Command {
	return &cli.Command{
		Name: "fields", Usage: "print the names and kinds of the fields that a tenant's points have, and the first and last day of each", ArgsUsage: "DATASET TENANT", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "record", Usage: "first read all points, and note the fields of those that were written before stores did; may be repeated"},
			&cli.IntFlag{Name: "points-per-second", Usage: "with --record: how `many` points to read in a second at most, 100 or more", Value: 10_000},
		},
		Action: a.withView(func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID, v *dynamic.View) error {
			if c.Args().Len() > 2 {
				return usageError{fmt.Errorf("%q is one argument too many; want DATASET TENANT", c.Args().Get(2))}
			}
			if a.form != "text" && a.form != "json" {
				return usageError{fmt.Errorf("--output is %q; want text or json", a.form)}
			}
			d := v.Repository().Schema()
			if c.Bool("record") {
				if err := a.recordFields(ctx, c, store, id, d); err != nil {
					return err
				}
			}
			list, err := dynamic.FieldsOf(ctx, store, id, d)
			if err != nil {
				return err
			}
			if len(list.Fields) == 0 {
				a.say("No field is known; --record reads the points that are stored")
			}
			of := knownOf(list)
			return a.print(of, of.text)
		}),
	}
}

// recordFields notes the fields of stored points.
func (a *app) recordFields(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID, d tsdb.Dataset) error {
	read, err := a.reader()
	if err != nil {
		return err
	}
	n, err := dynamic.RecordFields(ctx, store, id, d, read.options, c.Int("points-per-second"))
	a.say("%d points were read", n)
	return err
}

func knownOf(list dynamic.FieldList) knownFields {
	out := knownFields{Fields: []knownField{}, LeftOut: list.LeftOut}
	for _, f := range list.Fields {
		one := knownField{Name: f.Name, Kinds: []string{}}
		for _, k := range f.Kinds {
			one.Kinds = append(one.Kinds, k.String())
		}
		if !f.First.IsZero() {
			one.First, one.Last = f.First.Format(time.DateOnly), f.Last.Format(time.DateOnly)
		}
		out.Fields = append(out.Fields, one)
	}
	return out
}

func (of knownFields) text(w *tabwriter.Writer) {
	fmt.Fprintln(w, "FIELD\tKINDS\tFIRST\tLAST")
	for _, f := range of.Fields {
		name := cell(f.Name)
		if name == "" {
			name = "(the payload)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", name, strings.Join(f.Kinds, ","), f.First, f.Last)
	}
	if of.LeftOut > 0 {
		fmt.Fprintf(w, "%d or more fields are left out\t\t\t\n", of.LeftOut)
	}
}
