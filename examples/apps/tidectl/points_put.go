package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// put stores one point.
func (a *app) put() *cli.Command {
	return &cli.Command{
		Name: "put", Usage: "store a point; its payload is stored as it is, so it must be one of the dataset's codec", ArgsUsage: pointArgs, HideHelpCommand: true,
		Flags: []cli.Flag{
			timeFlag("time", "the point's `time`; now by default"),
			&cli.StringFlag{Name: "id", Usage: "the point's `ID`, in a dataset whose points have an identity"},
			&cli.StringFlag{Name: "json", Usage: "the payload, as `JSON`; for datasets with the tag json"},
			&cli.StringFlag{Name: "base64", Usage: "the payload of any codec, in `base64`"},
			&cli.StringFlag{Name: "tag", Usage: "the codec's `tag`; the dataset's first one by default"},
			&cli.StringFlag{Name: "class", Usage: "the retention `class`; that of the tenant's profile, or else the dataset's first one, by default"},
		},
		Action: a.withView(func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID, v *dynamic.View) error {
			e, err := entityOf(c, v)
			if err != nil {
				return err
			}
			d := described(v)
			p := dynamic.Point{Entity: e, Time: time.Now(), ID: c.String("id"), Tag: c.String("tag"), Class: c.String("class")}
			if c.IsSet("time") {
				p.Time = timeOf(c, "time")
			}
			if p.Tag == "" {
				p.Tag = d.Tags[0]
			}
			if p.Payload, err = payload(c, p.Tag); err != nil {
				return err
			}
			if p.Class == "" {
				if p.Class, err = classOf(ctx, store, id, d); err != nil {
					return err
				}
			}
			if err := v.Put(ctx, p); err != nil {
				return err
			}
			stored := map[string]any{"stored": e.String(), "time": instant.Time{Time: p.Time.UTC()}, "class": p.Class, "tag": p.Tag}
			text := fmt.Sprintf("%s at %s", e, instant.Text(p.Time.UTC()))
			if p.ID != "" {
				stored["id"] = p.ID
				text += ", ID " + p.ID
			}
			return a.print(stored, func(w *tabwriter.Writer) { fmt.Fprintf(w, "Stored  %s\n", text) })
		}),
	}
}

// payload returns the payload that the command line has.
func payload(c *cli.Command, tag string) ([]byte, error) {
	switch text, encoded := c.String("json"), c.String("base64"); {
	case c.IsSet("json") == c.IsSet("base64"):
		return nil, usageError{errors.New("give the payload as --json or as --base64")}
	case !c.IsSet("json"):
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, usageError{fmt.Errorf("--base64 cannot be decoded: %w", err)}
		}
		return raw, nil
	case tag != "json":
		return nil, usageError{fmt.Errorf("the tag is %s, whose payloads are no JSON: give --base64", tag)}
	case !json.Valid([]byte(text)):
		return nil, usageError{errors.New("--json is no JSON")}
	default:
		return []byte(text), nil
	}
}

// classOf returns the class that a program writes a tenant's points in.
func classOf(ctx context.Context, store *tsdb.Store, id tenant.ID, d dynamic.Description) (string, error) {
	p, err := tenants.Load(ctx, store, id)
	if err != nil && !errors.Is(err, tsdb.ErrNotFound) {
		return "", err
	}
	for _, name := range []string{p.Classes[d.Name], p.Retention} {
		if slices.ContainsFunc(d.Classes, func(c dynamic.Class) bool { return c.Name == name && c.Offered }) {
			return name, nil
		}
	}
	return d.Classes[0].Name, nil
}
