package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
	"github.com/tidemark-go/tidemark/examples/internal/infile"
	"github.com/tidemark-go/tidemark/tsdb"
)

// fileImport is the import of one file.
type fileImport struct {
	*importing
	name   string
	in     *infile.File
	format infile.Format
	route  *inbound.Route
	names  map[string]string // that the file's name says
	reader infile.Reader
	state  *importState
	saved  string // the file of the state; empty if there is none
	batch  *inbound.Batch[*origin]
	read   int // records since the last batch
	result *imported
}

// origin is the record that a point comes from.
type origin struct {
	infile.Record
	text    string // its beginning
	refused bool
}

// last is the last line, if there are several.
func (o *origin) last() int64 {
	if o.Last == o.First {
		return 0
	}
	return o.Last
}

// file imports a file. The result is nil if nothing was read.
func (im *importing) file(ctx context.Context, name string) (_ *imported, err error) {
	f, err := im.begin(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.prepare(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.result = &imported{File: name, Format: f.format, Tenant: im.opts.tenant.String(), State: f.saved, DryRun: im.opts.dry}
	defer func() { f.result.importState = *f.state }()
	if f.state.Done {
		im.say("%s is imported already, says %s: delete that file to import it again", name, f.saved)
		return f.result, nil
	}
	if err = f.run(ctx); err == nil {
		err = f.finish(ctx)
	}
	f.result.unreported = f.state.Refused
	return f.result, f.stopped(err)
}

// check finds the mistakes of a file that need no store. Of what can be read only once, such as a pipe, it checks the
// name.
func (im *importing) check(name string) error {
	if _, _, err := im.opts.route(name); err != nil || name == "-" {
		return err
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	f, err := im.begin(name)
	if err != nil {
		return err
	}
	return f.close()
}

// begin opens a file, and reads what is before its first record.
func (im *importing) begin(name string) (_ *fileImport, err error) {
	in, err := infile.Open(name, im.std.in)
	if err != nil {
		return nil, err
	}
	f := &fileImport{importing: im, name: name, in: in, batch: &inbound.Batch[*origin]{}}
	if f.route, f.names, err = im.opts.route(name); err == nil {
		if err = f.open(); err == nil {
			return f, nil
		}
		err = fmt.Errorf("%s: %w", name, err)
	}
	return nil, errors.Join(err, in.Close())
}

func (f *fileImport) close() error {
	if c, ok := f.reader.(io.Closer); ok {
		return errors.Join(c.Close(), f.in.Close())
	}
	return f.in.Close()
}

// route returns the route of a file, and what its name says.
func (o *importOptions) route(name string) (*inbound.Route, map[string]string, error) {
	stem, _ := infile.Stem(name)
	route, names := o.routes.Match(stem)
	if route == nil {
		return nil, nil, fmt.Errorf("%s: no pattern of --routes matches %q", name, stem)
	}
	_, err := route.Tenant(inbound.Message{Names: names}, o.tenant)
	switch {
	case route.Arrival():
		err = errors.New("its route has time=arrival: a file that is read again would be stored again, at another time")
	case route.Counts():
		err = errors.New("its route counts messages; files are only stored as points")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return route, names, err
}

// prepare finds where to go on.
func (f *fileImport) prepare() (err error) {
	if p, ok := f.reader.(*infile.Parquet); ok && len(p.LeftOut()) > 0 {
		f.say("%s: the columns %.500q are left out: they are neither numbers, texts, times nor lists of these", f.name, p.LeftOut())
	}
	in := importInput{
		Size: f.in.Size, Head: f.in.Head, Store: f.where, Tenant: f.opts.tenant.String(), Route: f.opts.given,
		Format: f.format, Columns: f.opts.columns, Comma: string(f.opts.csv.Comma), Decimal: f.opts.csv.DecimalComma,
	}
	if !f.opts.dry && f.in.Size >= 0 {
		f.saved = f.name + ".import"
	}
	f.saved = cmp.Or(f.opts.state, f.saved)
	if f.state, err = loadState(f.saved, in); err != nil || f.state.Done {
		return err
	}
	if err := f.errors.begin(f.opts.errors, f.state); err != nil {
		return err
	}
	if f.state.Records > 0 {
		f.say("%s: goes on after record %d, line %d", f.name, f.state.Records, f.state.Position.Line)
		err = f.reader.Seek(f.state.Position)
	}
	return err
}

// open finds the format, and begins to read the file in it.
func (f *fileImport) open() (err error) {
	if f.format = f.opts.format; f.format == "" && f.route.IsLines() {
		f.format = infile.FormatLine
	} else if f.format == "" {
		if f.format, err = f.in.Guess(); err != nil {
			return err
		}
	}
	if lines := f.format == infile.FormatLine; lines && !f.route.IsLines() {
		return errors.New("it is line protocol, so its route needs format=line, and no dataset: format=line key=host,* time=ns")
	} else if !lines && f.route.IsLines() {
		return fmt.Errorf("its route has format=line, and it is %s", f.format)
	}
	csv := f.opts.csv
	switch f.format {
	case infile.FormatCSV:
		csv.Text, csv.Number = f.route.Text, f.route.Number
		f.reader, err = infile.NewCSV(f.in, csv)
	case infile.FormatNDJSON:
		f.reader, err = infile.NewNDJSON(f.in)
	case infile.FormatLine:
		f.reader, err = infile.NewLineProtocol(f.in)
	case infile.FormatParquet:
		f.reader, err = infile.NewParquet(f.in, csv.Rename)
	}
	if err == nil && f.opts.columns != "" && f.format != infile.FormatCSV && (f.format != infile.FormatParquet || csv.Names != nil) {
		err = fmt.Errorf("--columns is for CSV, and as OLD=NEW for Parquet; it is %s", f.format)
	}
	return err
}

// recordsAtOnce is how many records are read before the state is saved, also if they store nothing.
const recordsAtOnce = 5000

// run reads the file to its end.
func (f *fileImport) run(ctx context.Context) error {
	total, at := f.in.Size, f.in.At
	if p, ok := f.reader.(*infile.Parquet); ok {
		total, at = p.Rows(), func() int64 { return p.Position().Offset }
	}
	bar := f.bar("Importing "+f.name, total)
	defer bar.end()
	if err := f.flush(ctx); err != nil { // the state can be saved; it is before there is a refused record in --errors
		return err
	}
	for {
		rec, err := f.reader.Next()
		if err == io.EOF {
			return f.flush(ctx)
		}
		if err != nil { // what was read before is good
			return errors.Join(fmt.Errorf("%s: after line %d: %w", f.name, f.reader.Position().Line, err), f.flush(ctx))
		}
		if err := f.take(ctx, rec); err != nil {
			return err
		}
		if f.read++; f.read == recordsAtOnce || f.batch.Full() {
			if err := f.flush(ctx); err != nil {
				return err
			}
			bar.set(at())
		}
		if f.read%256 == 0 && ctx.Err() != nil {
			return errInterrupted
		}
	}
}

// take adds the points of a record to the batch.
func (f *fileImport) take(ctx context.Context, rec infile.Record) error {
	f.state.Records++
	o := &origin{Record: infile.Record{First: rec.First, Last: rec.Last}, text: rec.Text}
	events, err := f.events(ctx, rec)
	if err == inbound.ErrBlank || err == nil && len(events) == 0 {
		f.state.Blank++
		return nil
	}
	if !inbound.IsFinal(err) {
		return err
	}
	if err != nil {
		return f.refuse(o, err)
	}
	for _, e := range events {
		if _, err := f.batch.Add(e.Point, o, rec.Bytes/len(events)); err != nil {
			if err := f.refuse(o, err); err != nil {
				return err
			}
			continue
		}
		f.result.sample(e.Point)
	}
	return nil
}

// events returns the points of a record. An error that is not final means that the store cannot be reached.
func (f *fileImport) events(ctx context.Context, rec infile.Record) ([]inbound.Event, error) {
	if rec.Err != nil {
		return nil, &inbound.Error{Reason: inbound.ReasonSyntax, Err: rec.Err}
	}
	ctx = context.WithoutCancel(ctx)
	m := inbound.Message{Names: f.names, Payload: rec.Payload, Values: rec.Values}
	if f.route.IsLines() {
		p, err := f.route.Line(ctx, f.datasets, f.opts.tenant, m)
		return []inbound.Event{{Point: p}}, err
	}
	return f.route.Events(ctx, f.datasets, f.opts.tenant, m)
}

// refuse counts a record that is not stored, and writes it to the file of errors.
func (f *fileImport) refuse(o *origin, why error) error {
	if o.refused {
		return nil
	}
	o.refused = true
	f.state.Refused++
	reason := "it cannot be stored"
	if refused, ok := errors.AsType[*inbound.Error](why); ok {
		reason = refused.Reason
	}
	f.state.Reasons[reason]++
	if len(f.result.Examples) < shownRefusals {
		f.result.Examples = append(f.result.Examples, refusedRecord{o.First, why.Error()})
	}
	return f.errors.add(f.name, o, why.Error())
}

// flush stores the batch, and saves how far the import is. Ctrl-C does not stop it.
func (f *fileImport) flush(ctx context.Context) error {
	if f.opts.dry {
		f.state.Points += int64(f.batch.Points())
	} else {
		var failed error
		err := f.batch.Store(context.WithoutCancel(ctx), f.sink, f.opts.tenant, func(origins []*origin, out tsdb.Outcome) {
			if out.Err == nil {
				f.state.Points++
				return
			}
			for _, o := range origins {
				if inbound.IsFinal(out.Err) && failed == nil {
					failed = f.refuse(o, out.Err)
				}
			}
		})
		if err = errors.Join(err, failed); err != nil {
			return fmt.Errorf("not all points are stored: %w", err)
		}
	}
	f.batch, f.read = &inbound.Batch[*origin]{}, 0
	if err := f.errors.sync(); err != nil {
		return err
	}
	f.state.Position, f.state.ErrorBytes = f.reader.Position(), f.errors.size
	return f.save()
}

func (f *fileImport) save() error {
	if f.saved == "" {
		return nil
	}
	return saveState(f.saved, f.state)
}

// finish says that all is stored, or what a dry run has found.
func (f *fileImport) finish(ctx context.Context) error {
	f.state.Done = true
	f.result.leftOut(f.datasets.LeftOut())
	if !f.opts.dry {
		return f.save()
	}
	return f.result.compare(ctx, f.target)
}

// stopped says how to go on after an error.
func (f *fileImport) stopped(err error) error {
	if err == nil || f.opts.dry {
		return err
	}
	if f.saved == "" {
		f.say("%s: the same input, imported again, changes nothing of what is stored; --state lets an import of standard input go on", f.name)
	} else if st, lerr := loadState(f.saved, f.state.Input); lerr == nil {
		f.state = st // the other one counts what is not stored
		f.say("%s: %d records are accounted for, up to line %d; the same command goes on there", f.name, st.Records, st.Position.Line)
	}
	return err
}
