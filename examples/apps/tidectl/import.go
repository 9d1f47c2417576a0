package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/examples/internal/infile"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// importTimeout is how long a point is sent again while the store does not answer.
var importTimeout = time.Minute

// importOptions are the flags of an import.
type importOptions struct {
	tenant    tenant.ID
	routes    *inbound.Routes
	given     string // the routes as they are given, to recognize them again
	format    infile.Format
	csv       infile.CSVOptions
	columns   string
	retention gc.Class
	times     inbound.Bounds
	dry       bool
	errors    string // the file of refused lines
	state     string
}

func (a *app) importFiles() *cli.Command {
	var o importOptions
	bounds := flag.NewFlagSet("import", flag.ContinueOnError)
	o.times.Flags(bounds)
	cmd := &cli.Command{
		Name: "import", Usage: "store the points of CSV, NDJSON, line protocol and Parquet; the same command goes on where it was interrupted",
		ArgsUsage: "FILE…", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "tenant", Usage: "the `tenant` of the points", Required: true},
			&cli.StringFlag{Name: "route", Usage: "where and how the points of all files are stored, in the `words` of MQTT's routes: dataset=telemetry key=site,device time=ts,auto"},
			&cli.StringFlag{Name: "routes", Usage: "a pattern `file` of MQTT's: its patterns match the files' names, without endings such as .csv.gz"},
			&cli.StringFlag{Name: "format", Usage: infile.Formats + "; by default what the `file` says"},
			&cli.StringFlag{Name: "columns", Usage: "other names for columns, as `Zeit=ts,Temp. °C=temp`; or all names, as ts,temp, for CSV without a header"},
			&cli.StringFlag{Name: "comma", Usage: "what separates the fields of CSV: one `character`, or tab; by default the one of ; tab and , that the first line has most often"},
			&cli.StringFlag{Name: "decimal", Usage: "the decimal `point` of CSV: . or a comma", Value: "."},
			&cli.StringFlag{Name: "keep", Usage: "when points expire, as a `policy`: never, or maxage=30d", Value: "never"},
			&cli.BoolFlag{Name: "dry-run", Usage: "show the first points and all mistakes, and store nothing"},
			&cli.StringFlag{Name: "errors", Usage: "write refused lines to this new `file`, as lines of JSON"},
			&cli.StringFlag{Name: "state", Usage: "keep how far the import is in this `file`; FILE.import by default, none for standard input and pipes"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := o.parse(c); err != nil {
				return usageError{err}
			}
			if a.form != "text" && a.form != "json" {
				return usageError{fmt.Errorf("--output is %q; want text or json", a.form)}
			}
			return a.importAll(ctx, o, c.Args().Slice())
		},
	}
	bounds.VisitAll(func(f *flag.Flag) {
		cmd.Flags = append(cmd.Flags, &cli.StringFlag{Name: f.Name, Usage: f.Usage, Validator: f.Value.Set})
	})
	return cmd
}

// parse checks the command line.
func (o *importOptions) parse(c *cli.Command) (err error) {
	if c.Args().Len() == 0 {
		return errors.New("import has no file; - is standard input")
	}
	if o.tenant, err = tenant.Parse(c.String("tenant")); err != nil {
		return fmt.Errorf("--tenant: %w", err)
	}
	if err := o.parseRoutes(c.String("route"), c.String("routes")); err != nil {
		return err
	}
	switch o.format = infile.Format(c.String("format")); o.format {
	case "", infile.FormatCSV, infile.FormatNDJSON, infile.FormatLine, infile.FormatParquet:
	default:
		return fmt.Errorf("--format is %q; want %s", o.format, infile.Formats)
	}
	if err := o.parseCSV(c); err != nil {
		return err
	}
	if o.retention, err = inbound.Retention(c.String("keep")); err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	o.dry, o.errors, o.state = c.Bool("dry-run"), c.String("errors"), c.String("state")
	switch {
	case o.state != "" && c.Args().Len() > 1:
		return errors.New("--state is for one file; of several files each has its own, beside it")
	case o.state != "" && o.dry:
		return errors.New("--state and --dry-run exclude each other: a dry run stores nothing to go on from")
	case c.IsSet("errors") && o.errors == "", c.IsSet("state") && o.state == "":
		return errors.New("--errors or --state is empty; want a file")
	}
	return nil
}

func (o *importOptions) parseRoutes(words, file string) (err error) {
	switch {
	case (words == "") == (file == ""):
		return errors.New("want --route, or --routes with a file: they say where the points are stored")
	case words != "":
		o.given = strings.Join(strings.Fields(words), " ")
		if o.routes, err = inbound.ParseRoutes(strings.NewReader("+/# " + o.given)); err != nil {
			return fmt.Errorf("--route: %w", err)
		}
	default:
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("--routes: %w", err)
		}
		o.given = fmt.Sprintf("sha256:%x", sha256.Sum256(text))
		if o.routes, err = inbound.ParseRoutes(strings.NewReader(string(text))); err != nil {
			return fmt.Errorf("--routes %s: %w", file, err)
		}
	}
	return nil
}

func (o *importOptions) parseCSV(c *cli.Command) error {
	for _, name := range []string{"comma", "decimal"} {
		if c.IsSet(name) && o.format != "" && o.format != infile.FormatCSV {
			return fmt.Errorf("--%s is for CSV, and --format is %s", name, o.format)
		}
	}
	switch comma := c.String("comma"); {
	case comma == "tab", comma == `\t`:
		o.csv.Comma = '\t'
	case len(comma) == 1 && !strings.ContainsAny(comma, "\"\r\n"):
		o.csv.Comma = comma[0]
	case c.IsSet("comma"):
		return fmt.Errorf("--comma is %q; want one character, or tab", comma)
	}
	switch decimal := c.String("decimal"); decimal {
	case ",":
		o.csv.DecimalComma = true
	case ".":
	default:
		return fmt.Errorf("--decimal is %q; want . or ,", decimal)
	}
	if o.columns = c.String("columns"); o.columns == "" {
		return nil
	}
	o.csv.Rename = map[string]string{}
	for entry := range strings.SplitSeq(o.columns, ",") {
		at := strings.LastIndexByte(entry, '=')
		name := strings.TrimSpace(entry[at+1:])
		if name == "" {
			return fmt.Errorf("--columns: %q has no name", entry)
		}
		if at < 0 {
			o.csv.Names = append(o.csv.Names, name)
		} else {
			o.csv.Rename[strings.TrimSpace(entry[:at])] = name
		}
	}
	switch {
	case o.csv.Names != nil && len(o.csv.Rename) > 0:
		return errors.New("--columns has names with and without =; want OLD=NEW for a file with a header, or all names for one without")
	case o.csv.Names != nil && o.format != "" && o.format != infile.FormatCSV, o.format == infile.FormatNDJSON, o.format == infile.FormatLine:
		return errors.New("--columns is for CSV, and as OLD=NEW for Parquet")
	}
	return nil
}

// importAll imports the files, one after the other.
func (a *app) importAll(ctx context.Context, o importOptions, files []string) (err error) {
	im := &importing{app: a, opts: o}
	for _, name := range files { // before there is a store, or a dataset whose key would have to stay
		if err := im.check(name); err != nil {
			return err
		}
	}
	if err := im.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, im.close()) }()
	refused := int64(0)
	for _, name := range files {
		result, err := im.file(ctx, name)
		if result != nil {
			refused += result.unreported
			err = errors.Join(err, a.print(result, result.print))
		}
		if err != nil {
			return err
		}
	}
	if refused > 0 {
		return fmt.Errorf("%d records are refused", refused)
	}
	return nil
}

// importing is what the imports of several files share.
type importing struct {
	*app
	opts     importOptions
	where    string // the store, to recognize it again
	store    *tsdb.Store
	target   *tsdb.Store // of a dry run, whose store is in memory; nil if there is none
	datasets *inbound.Datasets
	sink     inbound.Sink
	errors   errorFile
}

// open opens the store, and prepares it for the datasets of the routes.
func (im *importing) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, im.close())
		}
	}()
	switch _, serr := os.Stat(im.dir); {
	case im.opts.dry:
		if im.store, err = embedded.New(ctx, embedded.Options{NoSync: true}); err == nil && (im.dir == "" || serr == nil) {
			im.target, err = im.app.open(ctx, false)
		}
	default:
		if im.store, err = im.app.open(ctx, true); err == nil && im.dir != "" && serr != nil {
			im.say("The store in %s is new", im.dir)
		}
	}
	if err != nil {
		return err
	}
	if im.where = strings.Join([]string{im.project, im.instance, im.table}, "/"); im.dir != "" {
		if im.where, err = filepath.Abs(im.dir); err != nil {
			return err
		}
	}
	shared := tsdb.SchemaOptions{Retention: im.opts.retention}
	schemas, err := im.opts.routes.Schemas(shared)
	if err != nil {
		return err
	}
	im.datasets, err = inbound.NewDatasets(ctx, im.store, im.opts.routes.Keys(), inbound.Options{
		Schema: shared, Schemas: schemas, Mapping: im.opts.routes.Mapping(), Times: im.opts.times, Log: slog.New(slog.NewTextHandler(im.std.err, nil)),
	})
	if err != nil {
		return fmt.Errorf("%w; a dataset that is there keeps its key and its retention: --keep says the latter", err)
	}
	if _, err = tenants.Load(ctx, im.store, im.opts.tenant); err != nil && !errors.Is(err, tsdb.ErrNotFound) && !errors.Is(err, tsdb.ErrNoTable) {
		return err
	}
	w, err := im.store.NewWriter(tsdb.WriterOptions{DeliveryTimeout: importTimeout})
	im.sink = inbound.Sink{Store: im.store, Writer: w}
	return err
}

func (im *importing) close() error {
	err := im.errors.close()
	if im.sink.Writer != nil {
		err = errors.Join(err, im.sink.Writer.Close(context.Background()))
	}
	for _, c := range []*tsdb.Store{im.target, im.store} {
		if c != nil {
			err = errors.Join(err, io.Closer(c).Close())
		}
	}
	return err
}
