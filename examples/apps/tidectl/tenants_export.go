package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

func (a *app) tenantsExport() *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write a tenant's points to a file", ArgsUsage: "TENANT", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Usage: "the `file`, which must not be there; - is standard output", Required: true},
			keyFlag(),
			&cli.BoolFlag{Name: "continue", Usage: "go on with a file whose export was interrupted"},
			&cli.StringSliceFlag{Name: "dataset", Usage: "only this `dataset`; may be repeated"},
			&cli.StringFlag{Name: "format", Usage: "ndjson, which import takes; or csv, parquet or json, of one --dataset, for other programs", Value: "ndjson"},
			&cli.StringSliceFlag{Name: "measure", Usage: "of csv and parquet, a column with the `field` of the payloads, as temp_c or motor.temp_c, in place of all fields; door:state for a text; may be repeated"},
			timeFlag("from", "only points from this `time` on"), timeFlag("to", "only points before this `time`"),
		},
		Action: a.withTenant(func(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID) error {
			opts := transfer.ExportOptions{Datasets: c.StringSlice("dataset"), Interval: interval(c)}
			if len(opts.Datasets) == 0 {
				opts.Datasets = nil
			}
			var err error
			if opts.Key, err = readKey(c.String(keyFlagName)); err != nil {
				return err
			}
			name, goOn := c.String("file"), c.Bool("continue")
			if goOn && (name == "-" || opts.Datasets != nil || c.IsSet("from") || c.IsSet("to")) {
				return usageError{errors.New("--continue takes a --file that is there, and what that was asked for")}
			}
			format := c.String("format")
			table := format == "csv" || format == "parquet" || format == "json"
			switch {
			case !table && format != "ndjson":
				return usageError{fmt.Errorf("--format is %q; want ndjson, csv, parquet or json", format)}
			case table && (len(opts.Datasets) != 1 || goOn):
				return usageError{fmt.Errorf("--format %s takes one --dataset, and no --continue", format)}
			case format != "csv" && format != "parquet" && c.IsSet("measure"):
				return usageError{errors.New("--measure is for --format csv and parquet")}
			}
			var v *dynamic.View
			if table {
				var err error
				if v, err = a.view(ctx, store, id, opts.Datasets[0]); err != nil {
					return err
				}
			}
			measures, err := a.measuresOf(c.StringSlice("measure"))
			if err == nil && table {
				_, err = a.exported(unclosed{io.Discard}, v, format, measures) // refuses columns before it makes a file
			}
			if err != nil {
				return err
			}
			w, err := a.create(ctx, name, goOn, &opts)
			if err != nil || w == nil {
				return err
			}
			if table {
				if w, err = a.exported(w, v, format, measures); err != nil {
					return err
				}
			}
			bar := a.bar("Exporting", a.toExport(ctx, c, store, id, opts.Datasets))
			opts.Progress = func(e transfer.Exported) { bar.set(e.Points) }
			got, err := transfer.Export(ctx, store, id, w, opts)
			if err == nil {
				bar.set(got.Points)
			}
			bar.end()
			err = errors.Join(err, finish(w, name, err))
			written := name == "-" || !removeEmpty(name, err)
			if err != nil && table && written && name != "-" {
				return fmt.Errorf("%w; %s is not whole, and %s cannot be continued: delete it", err, name, strings.ToUpper(format))
			}
			if err != nil && ctx.Err() != nil && name != "-" {
				if !written {
					return fmt.Errorf("%w before anything was written", errInterrupted)
				}
				return fmt.Errorf("%w; the same command with --continue, and without --dataset, --from and --to, goes on", errInterrupted)
			}
			if err != nil {
				return err
			}
			if table {
				a.sayMissing(measures, got.Points)
			}
			if name == "-" {
				a.say("Exported  %d points of %s", got.Points, id)
				return nil
			}
			if table {
				got.Bytes, got.Lines = 0, 0 // those of the other format
			}
			return a.print(got, func(w *tabwriter.Writer) {
				if table {
					fmt.Fprintf(w, "Exported  %d points of %s to %s\n", got.Points, id, name)
					return
				}
				fmt.Fprintf(w, "Exported  %d points of %s to %s, %s\n", got.Points, id, name, size(got.Bytes))
			})
		}),
	}
}

// toExport returns about how many points an export will have, for its progress; -1 if none is shown, or if the export
// has an interval. It reads the keys of the tenant's rows. Expired points count too.
func (a *app) toExport(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID, datasets []string) (points int64) {
	if !a.progressShown() || c.IsSet("from") || c.IsSet("to") {
		return -1
	}
	r, err := a.count(ctx, store, id, false)
	if err != nil {
		return -1 // the export says why
	}
	for _, k := range r.Kinds {
		if datasets == nil || slices.Contains(datasets, k.Dataset) {
			points += k.Points
		}
	}
	return points
}

// exported returns what writes the points of an export to a file in a format for other programs.
func (a *app) exported(out io.WriteCloser, v *dynamic.View, format string, measures []measure) (io.WriteCloser, error) {
	r, err := a.reader()
	if err != nil {
		return nil, err
	}
	d := described(v)
	e := &exportedPoints{out: out, in: precisions[d.Precision]}
	switch format {
	case "csv":
		e.to, err = newTable(newCSV(out), r, v, measures, true)
	case "parquet":
		e.to, err = newTable(newParquet(out, d.Name, precisions[d.Precision]), r, v, measures, true)
	default:
		e.to = printedPoints{a, out, format, r, v}
	}
	return e, err
}

// finish closes a file, and where it is complete makes it and its name durable first: an export that is reported as
// done survives a crash of the machine.
func finish(w io.Closer, name string, failed error) error {
	var flushed error
	if e, ok := w.(*exportedPoints); ok {
		if flushed = e.to.end(failed); failed != nil {
			flushed = nil
		}
		w = e.out
	}
	f, ok := w.(*os.File)
	if !ok || failed != nil || flushed != nil {
		return errors.Join(flushed, w.Close())
	}
	err := errors.Join(f.Sync(), f.Close())
	if err != nil || runtime.GOOS == "windows" { // a folder cannot be synced there
		return err
	}
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// removeEmpty takes a file away that an export has failed to write anything to, so that the next one finds none.
func removeEmpty(name string, err error) bool {
	if err == nil {
		return false
	}
	info, serr := os.Stat(name)
	return serr == nil && info.Mode().IsRegular() && info.Size() == 0 && os.Remove(name) == nil
}

// create opens the file to export to; nil where nothing is left to do. No file that is there is written over.
func (a *app) create(ctx context.Context, name string, goOn bool, opts *transfer.ExportOptions) (io.WriteCloser, error) {
	if name == "-" {
		return unclosed{a.std.out}, nil
	}
	if !goOn {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("%w; --continue goes on with it where its export was interrupted", err)
		}
		return f, err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	at, complete, err := transfer.Recover(ctx, f, opts.Key)
	if err == nil && complete {
		if err := finish(f, name, nil); err != nil {
			return nil, err
		}
		a.say("%s is complete", name)
		return nil, nil
	}
	if err == nil && at.Line == 0 {
		err = fmt.Errorf("%s holds no whole block yet: delete it and export again", name)
	}
	if err == nil {
		err = f.Truncate(at.Offset)
	}
	if err == nil {
		_, err = f.Seek(at.Offset, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	opts.Continue = at
	return f, nil
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
