package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ExportOptions configure an export. The zero value exports all points of the tenant.
type ExportOptions struct {
	// Datasets are the names of the datasets to export. Nil is all datasets of the catalogue in which the tenant has
	// rows.
	Datasets []string
	// Entities are the only entities to export, up to 10,000, from each dataset with that number of key fields. Nil
	// is all.
	Entities []tsdb.Entity
	// Interval selects points by time. Zero is all of time. Its ends are in the years 0 to 9999.
	Interval tsdb.Interval
	// Continue continues after a checkpoint from Recover, with the options of the interrupted export: the options
	// above must be zero. The writer appends to the file, truncated at the checkpoint's Offset.
	Continue Checkpoint
	// Key protects the file's sums: only holders of the key can compute them, so Import and Check detect forgery, not
	// only damage. It has at least 32 random bytes. Keep it from everybody who can change the file. Nil is none. It
	// does not encrypt.
	Key []byte
	// Progress is called after each block, on the caller's goroutine, after w has taken the whole block. Nil disables
	// it.
	Progress func(Exported)
}

// Exported reports what an export has written. It marshals to JSON.
type Exported struct {
	// Points is how many points are in the file, and Datasets has them by dataset. With Continue, both include
	// earlier points.
	Points   int64            `json:"points"`
	Datasets map[string]int64 `json:"datasets"`
	// Unreadable is how many points were left out because the catalogue does not know their codec's tag.
	Unreadable int64 `json:"unreadable"`
	// Lines and Bytes are the length of the file, uncompressed.
	Lines int64 `json:"lines"`
	Bytes int64 `json:"bytes"`
}

// Export writes the visible points of a tenant to w, in the order of their rows, and returns what it wrote. If it
// fails or ctx ends, w has whole blocks and perhaps the start of another: Recover finds where to continue.
//
// It costs one request for every 1,000 points. It reads the rows one after the other, and with an Interval skips the
// others entity by entity. It holds one block in memory, about 4 MiB. It is bounded by ctx, and each request by the
// scan timeout, which includes the time that w takes. It reads the rows with the app profile
// tsdb.Config.BulkAppProfile. The error matches tsdb.ErrInvalid for a dataset that the catalogue does not have.
func Export(ctx context.Context, store *tsdb.Store, id tenant.ID, w io.Writer, opts ExportOptions) (done Exported, err error) {
	ctx, op := inside.Of(store).Watch().Begin(ctx, telemetry.TransferExport, telemetry.Subject{Tenant: id.String()})
	defer func() {
		op.Returned(int(done.Points))
		op.End(err)
	}()
	in, err := inside.Of(store).Internals()
	if err != nil {
		return Exported{}, err
	}
	if err := checkKey(opts.Key); err != nil {
		return Exported{}, err
	}
	if w == nil {
		return Exported{}, invalid.New(tsdb.ErrInvalid, "writer", "nil", "an io.Writer for the export")
	}
	e := &exporter{in: in, w: w, progress: opts.Progress, chain: newChain(opts.Key), counts: map[string]int64{}}
	if opts.Continue.Line > 0 {
		err = e.resume(id, opts)
	} else {
		err = e.start(ctx, id, opts)
	}
	if err != nil {
		return Exported{}, err
	}
	err = e.run(ctx)
	return e.exported(), err
}

// exporter is one export.
type exporter struct {
	in       inside.Store
	w        io.Writer
	progress func(Exported)
	header   *header
	chain    chain
	counts   map[string]int64
	last     record // the interrupted export's last point

	points     int64
	unreadable int64
	before     int64 // the part of unreadable before the last point, to which a checkpoint returns
	summed     int64 // the part of unreadable that the last sum includes
	block      bytes.Buffer
	pending    int // points in the current block
	line       []byte
}

func (e *exporter) exported() Exported {
	return Exported{Points: e.points, Datasets: maps.Clone(e.counts), Unreadable: e.unreadable, Lines: e.chain.line, Bytes: e.chain.offset}
}

// start writes the header.
func (e *exporter) start(ctx context.Context, id tenant.ID, opts ExportOptions) error {
	if id.IsZero() {
		return invalid.New(tenant.ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
	}
	if err := inside.Of(opts.Interval).Check(); err != nil {
		return err
	}
	if err := e.in.Admit(ctx, id); err != nil {
		return err
	}
	h := &header{Tidemark: kind, Version: version, Tenant: id.String(), At: e.in.Clock().UTC().Truncate(time.Second), Key: fingerprint(opts.Key)}
	var err error
	if h.From, err = end(opts.Interval.Start()); err != nil {
		return err
	}
	if h.To, err = end(opts.Interval.End()); err != nil {
		return err
	}
	if h.Datasets, err = e.choose(ctx, id, opts.Datasets); err != nil {
		return err
	}
	for _, entity := range opts.Entities {
		parts := entity.Parts()
		if !slices.ContainsFunc(h.Datasets, func(d catalog.Dataset) bool { return len(d.Key) == len(parts) }) {
			return invalid.New(tsdb.ErrInvalid, "entity", invalid.Quote(entity.String()), "one part for each key field of an exported dataset in which the tenant has rows")
		}
		h.Entities = append(h.Entities, parts)
	}
	if err := h.resolve(); err != nil {
		return err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(text) > maxLine-sealLen {
		return invalid.New(tsdb.ErrInvalid, "datasets and entities", fmt.Sprintf("%d bytes", len(text)), "less than 16 MiB")
	}
	e.header = h
	e.block.Write(e.chain.seal(text[:len(text)-1], true))
	return nil
}

// end returns one end of an interval for the header, or nil if there is none.
func end(t time.Time, ok bool) (*time.Time, error) {
	if !ok {
		return nil, nil
	}
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return nil, invalid.New(tsdb.ErrInvalid, "Interval", instant.Text(t), "ends in the years 0 to 9999")
	}
	return &t, nil
}

// choose returns the catalogue's entries of the datasets to export: the named ones, or all in which the tenant has
// rows. A tenant's file must not show other tenants' datasets.
func (e *exporter) choose(ctx context.Context, id tenant.ID, names []string) (all []catalog.Dataset, err error) {
	if names == nil {
		if all, err = catalog.DatasetsOf(ctx, e.in.Whole, e.in.Rows(id), id); err != nil {
			return nil, e.in.Explain(err)
		}
	} else {
		names = slices.Compact(slices.Sorted(slices.Values(names)))
		for some := range slices.Chunk(names, 1000) {
			st, err := catalog.Load(ctx, e.in.Whole, some)
			if err != nil {
				return nil, e.in.Explain(err)
			}
			for _, name := range some {
				entry, ok := st.Datasets[name]
				if !ok {
					return nil, invalid.New(tsdb.ErrInvalid, "dataset", invalid.Quote(name), "a dataset of the catalogue")
				}
				all = append(all, entry.Dataset)
			}
		}
	}
	for i := range all {
		all[i].Retired = nil // belongs to the table, not to the points
	}
	return all, nil
}

// resume continues after a checkpoint.
func (e *exporter) resume(id tenant.ID, opts ExportOptions) error {
	s := opts.Continue.state
	switch {
	case s == nil:
		return invalid.New(tsdb.ErrInvalid, "Continue", "a checkpoint of something else", "a checkpoint that Recover returned")
	case opts.Datasets != nil || opts.Entities != nil || opts.Interval != (tsdb.Interval{}):
		return invalid.New(tsdb.ErrInvalid, "Continue", "given", "no Datasets, Entities or Interval together with it: the file has them")
	case s.header.id != id:
		return invalid.New(ErrTenant, "tenant", invalid.Quote(id.String()), s.header.id.String()+", whose points the file holds")
	}
	if err := s.header.admitKey(opts.Key); err != nil {
		return err
	}
	e.header, e.chain, e.counts, e.last = s.header, s.chain, maps.Clone(s.counts), s.last
	e.chain.begin()
	e.points, e.unreadable = opts.Continue.Points, s.unreadable
	e.before, e.summed = s.unreadable, s.summed
	return nil
}

// run writes the points and the end.
func (e *exporter) run(ctx context.Context) error {
	for _, d := range e.header.datasets {
		if e.last.d != nil && d.index < e.last.d.index || d.oldest > d.newest || e.header.Entities != nil && d.entities == nil {
			continue
		}
		if err := e.dataset(ctx, d); err != nil {
			return err
		}
	}
	if e.block.Len() > 0 {
		if err := e.flush(e.before); err != nil {
			return err
		}
	}
	if e.unreadable = max(e.unreadable, e.summed); e.unreadable > e.summed { // behind the last point
		if err := e.flush(e.unreadable); err != nil {
			return err
		}
	}
	text, err := json.Marshal(closing{End: e.chain.close(e.unreadable), Lines: e.chain.line + 1, Points: e.points, Datasets: e.counts, Unreadable: e.unreadable})
	if err != nil {
		return err
	}
	return e.write(e.chain.seal(text[:len(text)-1], false))
}

func (e *exporter) dataset(ctx context.Context, d *dataset) error {
	raw, err := e.in.Raw(ctx, d.Dataset, e.header.id)
	if err != nil {
		return err
	}
	s := points.Selection{Oldest: d.oldest, Newest: d.newest, Bulk: true}
	if e.last.d != nil && e.last.d.index == d.index {
		s.After = &e.last.point
	}
	visit := func(p points.RawPoint) error {
		if err := ctxerr.Of(ctx); err != nil {
			return err
		}
		return e.point(d, p)
	}
	if d.entities == nil {
		return raw.Read(ctx, s, visit)
	}
	for _, path := range d.entities {
		if s.After != nil && path < s.After.Path {
			continue
		}
		s.Entity = path
		if s.After != nil && path > s.After.Path {
			s.After = nil // salted rows are in another order than entities
		}
		if err := raw.Read(ctx, s, visit); err != nil {
			return err
		}
	}
	return nil
}

// point adds a point to the block.
func (e *exporter) point(d *dataset, p points.RawPoint) error {
	if p.Unread != nil {
		e.unreadable++
		return nil
	}
	e.line = e.chain.seal(appendPoint(e.line[:0], d, p), true)
	e.block.Write(e.line)
	e.counts[d.Name]++
	e.points++
	e.pending++
	e.before = e.unreadable
	if e.pending == blockPoints || e.block.Len() >= blockBytes {
		return e.flush(e.before)
	}
	return nil
}

// flush writes the block and its sum, with the number of unreadable points up to it.
func (e *exporter) flush(unreadable int64) error {
	e.summed = max(e.summed, unreadable)
	text, err := json.Marshal(closing{Sum: e.chain.close(e.summed), Lines: e.chain.line + 1, Points: e.points, Unreadable: e.summed})
	if err != nil {
		return err
	}
	e.block.Write(e.chain.seal(text[:len(text)-1], false))
	if err := e.write(e.block.Bytes()); err != nil {
		return err
	}
	e.block.Reset()
	e.pending = 0
	if e.block.Cap() > 2*(blockBytes+maxLine) {
		e.block = bytes.Buffer{}
	}
	if e.progress != nil {
		e.progress(e.exported())
	}
	return nil
}

func (e *exporter) write(b []byte) error {
	n, err := e.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("transfer: write the export: %w", errtype.Foreign("transfer.File", err))
	}
	return nil
}
