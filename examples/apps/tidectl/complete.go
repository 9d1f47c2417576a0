package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// The most names that a shell gets, and how long it waits for them.
const (
	mostNames    = 100
	completeTime = 2 * time.Second
)

// completes lets shells complete the names of datasets and tenants, for a command and all below it.
func (a *app) completes(c *cli.Command) {
	for _, sub := range c.Commands {
		a.completes(sub)
	}
	if strings.Contains(c.ArgsUsage, "DATASET") || strings.Contains(c.ArgsUsage, "TENANT") {
		c.ShellComplete = a.completeNames
	}
}

// completeNames prints what the next argument of a command can be. It only reads a folder, and says nothing of errors.
func (a *app) completeNames(ctx context.Context, c *cli.Command) {
	given, wanted := c.Args().Slice(), strings.Fields(c.ArgsUsage)
	if n := len(given); a.dir == "" || n > 0 && strings.HasPrefix(given[n-1], "-") || n >= len(wanted) {
		cli.DefaultCompleteWithFlags(ctx, c)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	a.std.err = io.Discard
	store, err := a.open(ctx, false)
	if err != nil {
		return
	}
	defer store.Close()
	switch strings.Trim(wanted[len(given)], "[]") {
	case "DATASET":
		completeDatasets(ctx, a.std.out, store)
	case "TENANT":
		completeTenants(ctx, a.std.out, store)
	}
}

func completeDatasets(ctx context.Context, out io.Writer, store *tsdb.Store) {
	n := 0
	for d, err := range store.Datasets(ctx) {
		if n++; n > mostNames {
			return
		}
		if err == nil {
			fmt.Fprintln(out, d.Name())
		}
	}
}

func completeTenants(ctx context.Context, out io.Writer, store *tsdb.Store) {
	n := 0
	for t, err := range tenants.List(ctx, store, tenants.ListOptions{}) {
		if n++; err != nil || n > mostNames {
			return
		}
		fmt.Fprintln(out, t.ID)
	}
}
