package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// withTenant is withStore for a command on a tenant that has to exist: a name that is misspelt would else look like a tenant that
// has stored nothing.
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

// timeFlag returns a flag for a time: RFC 3339, or a date or a time without a zone, which are in UTC.
func timeFlag(name, usage string) *cli.TimestampFlag {
	return &cli.TimestampFlag{
		Name: name, Usage: usage + ", as 2026-11-01T12:00:00Z, or 2026-11-01 in UTC",
		Config: cli.TimestampConfig{Timezone: time.UTC, Layouts: []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly}},
	}
}
