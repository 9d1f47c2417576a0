package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/keyadvice"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// adviceOn is the advice on a dataset's key, by a sample.
type adviceOn struct {
	Dataset  string             `json:"dataset"`
	Tenant   string             `json:"tenant,omitempty"` // whose entities the sample holds; empty where a file says
	Entities int                `json:"entities"`         // of the sample
	Advice   []keyadvice.Advice `json:"advice"`
}

// advise judges keys: those that a store has, or those that a file lists before there is a store.
func (a *app) advise() *cli.Command {
	return &cli.Command{
		Name: "advise", Usage: "judge a dataset's key by a sample of its entities", ArgsUsage: "DATASET [TENANT]", HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Usage: "read entities from this `file`, a line each: tenant, parts and a rate; - is standard input"},
			&cli.StringFlag{Name: "key", Usage: "with --file: the `names` of the key fields, with commas between them; kinds as in stop:uint5"},
			&cli.IntFlag{Name: "salts", Usage: "with --file: the schema's `number` of salts"},
			&cli.IntFlag{Name: "head", Usage: "with --file: how many `points` a head keeps"},
			&cli.FloatFlag{Name: "share", Usage: "with --file: which `part` of all entities the file holds, above 0 and up to 1; all by default"},
			&cli.BoolFlag{Name: "arrival", Usage: "with --file: the lines are in the order in which the entities came"},
			&cli.IntFlag{Name: "entities", Usage: "without --file: how `many` entities to pick, 1,000 by default and 10,000 at most"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if a.form != "text" && a.form != "json" {
				return usageError{fmt.Errorf("--output is %q; want text or json", a.form)}
			}
			of := adviceOn{Dataset: c.Args().First()}
			var d tsdb.Dataset
			var s keyadvice.Sample
			var err error
			if c.IsSet("file") {
				d, s, err = a.sampleOfFile(c)
			} else {
				of.Tenant = c.Args().Get(1)
				d, s, err = a.sampleOfStore(ctx, c)
			}
			if err != nil {
				return err
			}
			of.Entities = len(s.Entities)
			if of.Advice, err = keyadvice.Advise(d, s); err != nil {
				return err
			}
			return a.print(of, func(w *tabwriter.Writer) { of.text(w) })
		},
	}
}

func (of adviceOn) text(w io.Writer) {
	if len(of.Advice) == 0 {
		fmt.Fprintf(w, "%s: nothing to say by %d entities\n", of.Dataset, of.Entities)
	}
	for i, adv := range of.Advice {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n  %s\n  Why: %s\n  What helps: %s\n", adv.Severity, adv.Cause, adv.Found, adv.Why, adv.Remedy)
	}
}

// sampleOfStore samples what a tenant has stored.
func (a *app) sampleOfStore(ctx context.Context, c *cli.Command) (d tsdb.Dataset, s keyadvice.Sample, err error) {
	if c.Args().Len() != 2 {
		return nil, s, usageError{fmt.Errorf("%s takes a dataset and a tenant, or --file", c.FullName())}
	}
	for _, name := range []string{"key", "salts", "head", "share", "arrival"} {
		if c.IsSet(name) {
			return nil, s, usageError{fmt.Errorf("--%s goes with --file; what is stored has a schema", name)}
		}
	}
	id, err := tenant.Parse(c.Args().Get(1))
	if err != nil {
		return nil, s, usageError{err}
	}
	store, err := a.open(ctx, false)
	if err != nil {
		return nil, s, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return keyadvice.TakeSample(ctx, store, c.Args().First(), id, c.Int("entities"))
}

// sampleOfFile reads a sample for a schema that may not exist yet.
func (a *app) sampleOfFile(c *cli.Command) (d tsdb.Dataset, s keyadvice.Sample, err error) {
	if c.Args().Len() != 1 || c.String("key") == "" || c.IsSet("entities") {
		return nil, s, usageError{fmt.Errorf("%s with --file takes a dataset, and --key; --entities is for a store", c.FullName())}
	}
	if c.IsSet("share") {
		if s.Share = c.Float("share"); !(s.Share > 0 && s.Share <= 1) {
			return nil, s, usageError{fmt.Errorf("--share is %v; want above 0 and up to 1, such as 0.05 for one entity in twenty", s.Share)}
		}
	}
	fields, err := keyFields(c.String("key"))
	if err != nil {
		return nil, s, usageError{err}
	}
	opts := tsdb.SchemaOptions{Salts: c.Int("salts"), Head: tsdb.Head{Points: c.Int("head")}}
	if opts.Head.Points != 0 {
		opts.Precision = tsdb.Milliseconds // which heads need
	}
	d, err = tsdb.Define(c.Args().First(), fields, codec.Bytes(), opts)
	if err != nil {
		return nil, s, usageError{err}
	}
	r, _, err := a.openFile(c.String("file"))
	if err != nil {
		return nil, s, err
	}
	defer r.Close()
	s.Arrival = c.Bool("arrival")
	s.Entities, err = readEntities(r, d, strings.Count(c.String("key"), ",")+1)
	return d, s, err
}

// keyFields reads the names of key fields, each with its kind behind a colon where it is not text.
func keyFields(text string) (key tsdb.KeyFields, err error) {
	for field := range strings.SplitSeq(text, ",") {
		name, kind, _ := strings.Cut(field, ":")
		form := strings.TrimRight(kind, "0123456789")
		digits, _ := strconv.Atoi(kind[len(form):])
		switch {
		case kind == "" || kind == "text":
			key = key.Text(name)
		case form == "uint":
			key = key.Uint(name, digits)
		case form == "int":
			key = key.Int(name, digits)
		case kind == "reversed_id":
			key = key.ReversedID(name)
		case kind == "reversed_domain":
			key = key.ReversedDomain(name)
		case kind == "uuid":
			key = key.UUID(name)
		default:
			return key, fmt.Errorf("--key has %q; want text, uint1 to uint20, int1 to int19, reversed_id, reversed_domain or uuid behind the colon", field)
		}
	}
	return key, nil
}

// readEntities reads lines of a tenant, as many parts as there are fields, and perhaps a rate, with tabs between them
// or, where a line has none, spaces. Lines that are empty or start with # are passed over. mostGiven is how many
// entities keyadvice.Advise takes.
const mostGiven = 100_000

func readEntities(r io.Reader, d tsdb.Dataset, fields int) ([]keyadvice.SampledEntity, error) {
	var out []keyadvice.SampledEntity
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		if len(out) == mostGiven {
			return nil, fmt.Errorf("line %d: there are more than %d entities; take some of them at random", n, mostGiven)
		}
		e, err := readEntity(line, d, fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, e)
	}
	return out, lines.Err()
}

func readEntity(line string, d tsdb.Dataset, fields int) (e keyadvice.SampledEntity, err error) {
	columns := strings.Fields(line)
	if strings.Contains(line, "\t") {
		columns = strings.Split(line, "\t")
	}
	if n := len(columns); n != fields+1 && n != fields+2 {
		return e, fmt.Errorf("%d columns; want a tenant, %d parts and perhaps a rate", n, fields)
	}
	if e.Tenant, err = tenant.Parse(columns[0]); err != nil {
		return e, err
	}
	values := make([]any, fields)
	for i := range values {
		values[i] = columns[1+i]
	}
	if e.Entity, err = d.Entity(values...); err != nil {
		return e, err
	}
	if len(columns) == fields+2 {
		if e.Rate, err = strconv.ParseFloat(columns[fields+1], 64); err != nil {
			return e, fmt.Errorf("the rate %q is no number", columns[fields+1])
		}
	}
	return e, nil
}
