package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

func (a *app) tenantsShow() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show a tenant's profile and the report of its erasure", ArgsUsage: "TENANT", HideHelpCommand: true,
		Action: a.withStore(true, func(ctx context.Context, _ *cli.Command, store *tsdb.Store, id tenant.ID) error {
			var shown struct {
				Tenant  tenant.ID        `json:"tenant"`
				Profile *tenants.Profile `json:"profile"`
				Kept    []tenants.Kept   `json:"kept"`
				Erasure *tenants.Report  `json:"erasure"`
			}
			shown.Tenant = id
			p, err := tenants.Load(ctx, store, id)
			switch {
			case err == nil:
				shown.Profile = &p
			case !errors.Is(err, tsdb.ErrNotFound) && !errors.Is(err, tsdb.ErrErased):
				return err
			}
			if shown.Kept, err = tenants.KeptFor(ctx, store, id); err != nil && !errors.Is(err, tsdb.ErrErased) {
				return err
			}
			r, err := tenants.Erasure(ctx, store, id)
			switch {
			case err == nil:
				shown.Erasure = &r
			case !errors.Is(err, tsdb.ErrNotFound):
				return err
			}
			return a.print(shown, func(w *tabwriter.Writer) {
				if p := shown.Profile; p == nil {
					fmt.Fprintf(w, "%s has no profile\n", id)
				} else {
					fmt.Fprintf(w, "Tenant\t%s\nName\t%s\nRetention\t%s\nLimits\t%s\nView\t%v\n", id, p.Name, p.Retention, p.Limits, p.View)
					for _, dataset := range slices.Sorted(maps.Keys(p.Classes)) {
						fmt.Fprintf(w, "Retention of %s\t%s\n", dataset, p.Classes[dataset])
					}
				}
				for _, k := range shown.Kept {
					text := "points " + k.Points
					for _, u := range k.Rollups {
						text += ", rollup " + u.Name + " " + u.Policy
					}
					fmt.Fprintf(w, "Kept of %s\tclass %s: %s\n", k.Dataset, k.Class, text)
				}
				if shown.Erasure != nil {
					fmt.Fprintf(w, "\n%s\n", shown.Erasure)
				}
			})
		}),
	}
}
