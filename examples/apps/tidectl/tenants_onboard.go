package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

func (a *app) tenantsOnboard() *cli.Command {
	return &cli.Command{
		Name: "onboard", Usage: "write a tenant's profile; again changes nothing", ArgsUsage: "TENANT", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "how people call the tenant"},
			&cli.StringFlag{Name: "retention", Usage: "the retention `class` of its points, in every dataset that offers it"},
			&cli.StringMapFlag{Name: "class", Usage: "the retention class of its points in one dataset, as `dataset=class`; may be repeated"},
			&cli.StringFlag{Name: "limits", Usage: "its limits, as `JSON`"},
			&cli.BoolFlag{Name: "replace", Usage: "put it in the place of a profile that differs, whole: what is not given is empty then"},
			&cli.Uint64Flag{Name: "version", Usage: "with --replace, only if the profile still has this `number`, which tenants show prints"},
			&cli.BoolFlag{Name: "readmit", Usage: "admit a tenant whose erasure has ended"},
		},
		Action: a.withStore(true, func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID) error {
			p := tenants.Profile{Name: c.String("name"), Retention: c.String("retention"), Classes: c.StringMap("class"), Version: c.Uint64("version")}
			if text := c.String("limits"); text != "" {
				p.Limits = []byte(text)
			}
			p, err := tenants.Onboard(ctx, store, id, p, tenants.OnboardOptions{Replace: c.Bool("replace"), Readmit: c.Bool("readmit")})
			if errors.Is(err, tenants.ErrConflict) && !c.Bool("replace") {
				return fmt.Errorf("%w; tenants show prints it, --replace puts this one in its place", err)
			}
			if err != nil {
				return err
			}
			return a.print(p, func(w *tabwriter.Writer) { fmt.Fprintf(w, "Onboarded  %s\n", id) })
		}),
	}
}

func (a *app) tenantsReadmit() *cli.Command {
	return &cli.Command{
		Name: "readmit", Usage: "admit a tenant, or one entity of it, again whose erasure has ended", ArgsUsage: "TENANT", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringMapFlag{Name: "entity", Usage: "only the entity with this `field=value`; once for each key field"},
			&cli.StringFlag{Name: "dataset", Usage: "the entity in this `dataset` only"},
		},
		DisableSliceFlagSeparator: true,
		Action: a.withStore(true, func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID) error {
			fields, dataset := c.StringMap("entity"), c.String("dataset")
			var err error
			switch {
			case len(fields) > 0:
				err = tenants.ReadmitEntity(ctx, store, id, dataset, fields)
			case dataset != "":
				err = usageError{fmt.Errorf("--dataset is for --entity")}
			default:
				err = tenants.Readmit(ctx, store, id)
			}
			if err != nil {
				return err
			}
			return a.print(map[string]tenant.ID{"readmitted": id}, func(w *tabwriter.Writer) { fmt.Fprintf(w, "Readmitted  %s\n", id) })
		}),
	}
}
