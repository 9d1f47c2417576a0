package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/internal/heat"
)

// heatmap shows recordings of row keys. It needs no store.
func (a *app) heatmap() *cli.Command {
	return &cli.Command{
		Name: "heatmap", Usage: "show which row keys were used, and what a table cannot spread", HideHelpCommand: true,
		Commands: []*cli.Command{
			{
				Name: "show", Usage: "draw recordings with blocks, or as a page", ArgsUsage: "FILE…", HideHelpCommand: true,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "html", Usage: "write a page to this `file`, with mode 0600"},
					&cli.StringFlag{Name: "by", Usage: "what a line of blocks is: key, dataset or tenant", Value: heatview.Views[0]},
				},
				Action: func(_ context.Context, c *cli.Command) error {
					if !slices.Contains(heatview.Views, c.String("by")) {
						return usageError{fmt.Errorf("--by is %q; want %s", c.String("by"), strings.Join(heatview.Views, ", "))}
					}
					r, err := recordings(c)
					if err != nil {
						return err
					}
					if c.String("html") == "" {
						width, lines := screen(a.std.out)
						return heatview.WriteText(a.std.out, r, heatview.TextOptions{Width: width, Lines: lines - 6, By: c.String("by"), Colour: bool(inkOf(a.std.out))})
					}
					return writePrivate(c.String("html"), func(w io.Writer) error { return heatview.WriteHTML(w, r) })
				},
			},
			{
				Name: "find", Usage: "say what a table cannot spread over its servers", ArgsUsage: "FILE…", HideHelpCommand: true,
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "detailed-exitcode", Usage: "end with 5 if something was found"}},
				Action: func(_ context.Context, c *cli.Command) error { return a.findInHeatmap(c) },
			},
			{
				Name: "merge", Usage: "make one recording of several", ArgsUsage: "FILE…", HideHelpCommand: true,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "out", Usage: "write the recording to this `file`, with mode 0600", Required: true},
				},
				Action: func(_ context.Context, c *cli.Command) error {
					r, err := recordings(c)
					if err != nil {
						return err
					}
					return r.Save(c.String("out"))
				},
			},
		},
	}
}

// recordings loads the files that a command names, as one recording.
func recordings(c *cli.Command) (*heat.Recording, error) {
	if !c.Args().Present() {
		return nil, usageError{fmt.Errorf("%s takes at least one file", c.FullName())}
	}
	return heatview.Load(c.Args().Slice()...)
}

// writePrivate writes a file that only its owner may read.
func writePrivate(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = file.Chmod(0o600); err == nil { // the file may have been another's
		err = write(file)
	}
	return errors.Join(err, file.Close())
}

func (a *app) findInHeatmap(c *cli.Command) error {
	if a.form != "text" && a.form != "json" {
		return usageError{fmt.Errorf("--output is %q; want text or json", a.form)}
	}
	r, err := recordings(c)
	if err != nil {
		return err
	}
	found := append([]heatview.Finding{}, heatview.Findings(r)...)
	if err := a.print(found, func(w *tabwriter.Writer) {
		t := r.Totals()
		fmt.Fprintf(w, "%d reads, %d writes and %d failures: %d findings\n", t.Reads, t.Writes, t.Failures, len(found))
		for _, f := range found {
			key := strings.Trim(strconv.Quote(f.Key), `"`) // keys hold any bytes, and a terminal obeys some
			fmt.Fprintf(w, "\n%s: %s\n  %s\n  What helps: %s\n", f.Rule, key, f.Reason, f.Remedy)
		}
	}); err != nil {
		return err
	}
	if len(found) > 0 && c.Bool("detailed-exitcode") {
		return errFound
	}
	return nil
}

var errFound = errors.New("something was found")
