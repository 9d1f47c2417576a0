package main

import (
	"context"

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
			out, err := a.rows("tenant", "name", "rows", "erased")
			if err != nil {
				return err
			}
			for t, err := range tenants.List(ctx, store, tenants.ListOptions{ProfilesOnly: c.Bool("profiles-only")}) {
				if err != nil {
					return out.end(err)
				}
				name := ""
				if t.Profile != nil {
					name = t.Profile.Name
				}
				if err := out.add(t, t.ID.String(), name, yes(t.Rows), string(t.Erased)); err != nil {
					return err
				}
			}
			return out.end(nil)
		}),
	}
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}
