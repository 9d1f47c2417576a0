package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// withTenant is withStore for a command on a tenant that has to exist: a name that is misspelt would else look like a
// tenant that has stored nothing.
func (a *app) withTenant(act func(context.Context, *cli.Command, *tsdb.Store, tenant.ID) error) cli.ActionFunc {
	return a.withStore(true, func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID) error {
		if err := existing(ctx, store, id); err != nil {
			return err
		}
		return act(ctx, c, store, id)
	})
}

// existing returns an error where a tenant has no rows, no profile and no erasure mark.
func existing(ctx context.Context, store *tsdb.Store, id tenant.ID) error {
	found, err := tenants.Exists(ctx, store, id)
	if err == nil && !found {
		err = fmt.Errorf("there is no tenant %s: it has no rows, no profile and no erasure mark; tenants list shows who has", id)
	}
	return err
}
