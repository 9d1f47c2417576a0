package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/urfave/cli/v3"
)

// The service keeps a backup for at most 90 days: https://cloud.google.com/bigtable/docs/backups#features.
const keepBackup = 7 * 24 * time.Hour

func clusterFlags(makes bool) []cli.Flag {
	flags := []cli.Flag{&cli.StringFlag{Name: "cluster", Usage: "on Bigtable, the `cluster` of the backup"}}
	if makes {
		flags = append(flags, &cli.DurationFlag{Name: "keep", Usage: "on Bigtable, how long the backup is kept: 6h to 2160h", Value: keepBackup})
	}
	return flags
}

// withBackups calls f with the service of the table's backups.
func (a *app) withBackups(ctx context.Context, c *cli.Command, f func(admin *bigtable.AdminClient, cluster, name string) error) (err error) {
	if a.instance == "" || c.String("cluster") == "" {
		return usageError{errors.New("a backup on Bigtable needs --project, --instance and --cluster")}
	}
	opts, err := connection()
	if err != nil {
		return err
	}
	admin, err := bigtable.NewAdminClient(ctx, a.project, a.instance, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close()) }()
	return f(admin, c.String("cluster"), c.Args().First())
}

func (a *app) backupTable(ctx context.Context, c *cli.Command) error {
	if a.table == "" {
		return usageError{errors.New("--table is missing")}
	}
	return a.withBackups(ctx, c, func(admin *bigtable.AdminClient, cluster, name string) error {
		if err := admin.CreateBackup(ctx, a.table, cluster, name, time.Now().Add(c.Duration("keep"))); err != nil {
			return err
		}
		return a.printTableBackup(ctx, admin, cluster, name)
	})
}

func (a *app) verifyTable(ctx context.Context, c *cli.Command) error {
	return a.withBackups(ctx, c, func(admin *bigtable.AdminClient, cluster, name string) error {
		return a.printTableBackup(ctx, admin, cluster, name)
	})
}

func (a *app) printTableBackup(ctx context.Context, admin *bigtable.AdminClient, cluster, name string) error {
	b, err := admin.BackupInfo(ctx, cluster, name)
	if err != nil {
		return err
	}
	return a.print(b, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "backup\t%s\n", b.Name)
		fmt.Fprintf(w, "of\t%s, %s to %s\n", b.SourceTable, b.StartTime.UTC().Format(time.RFC3339), b.EndTime.UTC().Format(time.RFC3339))
		fmt.Fprintf(w, "state\t%s, %s, until %s\n", b.State, size(b.SizeBytes), b.ExpireTime.UTC().Format(time.RFC3339))
	})
}

func (a *app) restoreTable(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() != 2 || c.String("journals") != "" {
		return usageError{errors.New("on Bigtable, restore takes the name of a backup and that of a new table; it has no journals")}
	}
	table := c.Args().Get(1)
	return a.withBackups(ctx, c, func(admin *bigtable.AdminClient, cluster, name string) error {
		if err := admin.RestoreTable(ctx, table, cluster, name); err != nil {
			return err
		}
		a.say("Tenants and entities that were erased after the backup are back: erase them before programs open %s", table)
		return a.print(map[string]string{"table": table, "backup": name}, func(w *tabwriter.Writer) { fmt.Fprintf(w, "table\t%s, from the backup %s\n", table, name) })
	})
}
