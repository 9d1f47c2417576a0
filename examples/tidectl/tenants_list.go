package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

func (a *app) tenantsList() *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list the tenants, one a line", HideHelpCommand: true,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "profiles-only", Usage: "do not look for rows: faster where there are many tenants"}},
		Action: a.withStore(false, func(ctx context.Context, c *cli.Command, store *tsdb.Store, _ tenant.ID) error {
			for t, err := range tenants.List(ctx, store, tenants.ListOptions{ProfilesOnly: c.Bool("profiles-only")}) {
				if err != nil {
					return err
				}
				if a.form == "json" { // a line each, as they come
					if err := json.NewEncoder(a.std.out).Encode(t); err != nil {
						return err
					}
					continue
				}
				if _, err := fmt.Fprintln(a.std.out, line(t)); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

// line returns a tenant as a line of text.
func line(t tenants.Tenant) string {
	s := fmt.Sprintf("%-32s", t.ID)
	if t.Profile != nil {
		s += fmt.Sprintf("  onboarded %q", t.Profile.Name)
	}
	if t.Rows {
		s += "  has rows"
	}
	if t.Erased != "" {
		s += "  " + string(t.Erased)
	}
	return s
}
