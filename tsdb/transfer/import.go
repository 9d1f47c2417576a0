package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ImportOptions configure an import. The zero value imports the whole file into datasets that the store has.
type ImportOptions struct {
	// OtherTenant allows a file of another tenant than the one to import into. Without it, Import fails with
	// ErrTenant.
	OtherTenant bool
	// Create adds the datasets that the catalogue lacks. It works like Ensure and needs the same rights. Without it,
	// Import fails with a *tsdb.ConflictError if it lacks one.
	Create bool
	// Extend adds the codec tags and retention classes of the file that a dataset of the catalogue lacks, as Create
	// adds datasets. Ensure and Verify then refuse every program that declares the dataset without them. Without
	// Extend, Import fails with a *tsdb.ConflictError, and the error names each of them.
	Extend bool
	// Datasets are the names of the only datasets to import. Nil is all in the file.
	Datasets []string
	// DryRun reads and checks the whole file, compares it with the catalogue, and writes nothing. Stored then counts
	// the points that would have been sent.
	DryRun bool
	// Key is the ExportOptions.Key of the file, or nil for a file without a key. Another key fails with ErrKey. With
	// a key, Import uses no block, and not the header, before it has checked its sum.
	Key []byte
	// Continue continues after a checkpoint from Imported. Import reads and checks the earlier part of the file
	// again, but does not store it again. The zero Checkpoint is the start.
	Continue Checkpoint
	// Progress is called after each block, on the caller's goroutine. Nil disables it.
	Progress func(Imported)
	// Refused is called with a *LineError for each point that cannot be stored and is skipped. Nil disables it.
	Refused func(error)
}

// Imported reports the points of a file by their outcome. It marshals to JSON.
type Imported struct {
	// Tenant is the tenant of the file.
	Tenant tenant.ID `json:"tenant"`
	// Points is how many points were read. Each point is also counted once below, except points of datasets that were
	// not requested.
	Points int64 `json:"points"`
	// Stored is how many points are now in the store, including those already stored with an equal value.
	Stored int64 `json:"stored"`
	// Before is how many points are before the checkpoint.
	Before int64 `json:"before"`
	// Expired is how many points were skipped because they had already expired.
	Expired int64 `json:"expired"`
	// Exists is how many points of a first-wins dataset have another stored value, or would change an immutable
	// field.
	Exists int64 `json:"exists"`
	// Erased is how many points were skipped because their entities were erased.
	Erased int64 `json:"erased"`
	// Refused is how many points the dataset cannot store: too large for its heads, or impossible to merge with the
	// stored value.
	Refused int64 `json:"refused"`
	// Complete says that Import read the file to its end.
	Complete bool `json:"complete"`
	// Checkpoint is the last block whose points are all counted.
	Checkpoint Checkpoint `json:"checkpoint"`
}

// Import stores the points of a file for a tenant, block by block. It stores no point of a damaged block. Points keep
// their codec's tag and their retention class. They are written like all points: heads are updated, first-wins and
// merging datasets apply their rules, and an erased tenant is refused. Importing a file again changes nothing.
//
// Import counts and skips points that can never be stored. If the service refuses a write, or the outcome of a write
// is unknown, Import ends with a *LineError of the first such point. It matches tsdb.ErrRejected or tsdb.ErrUnknown;
// some points of that block may be stored. In any case, Imported reports the progress and where to continue.
//
// Import costs one bulk request for every block of up to 1,000 points, conditional requests if the dataset needs
// them, and memory for a block. It is bounded by ctx, and each block by the scan timeout.
func Import(ctx context.Context, store *tsdb.Store, id tenant.ID, r io.Reader, opts ImportOptions) (_ Imported, err error) {
	ctx, op := inside.Of(store).Watch().Begin(ctx, telemetry.TransferImport, telemetry.Subject{Tenant: id.String()})
	defer func() { op.End(err) }()
	in, err := inside.Of(store).Internals()
	if err != nil {
		return Imported{}, err
	}
	if id.IsZero() {
		return Imported{}, invalid.New(tenant.ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
	}
	if err := in.Admit(ctx, id); err != nil && !(opts.Create && errors.Is(err, tsdb.ErrNoTable)) {
		return Imported{}, err
	}
	b, err := openBlocks(r, opts.Key)
	if err != nil {
		return Imported{}, err
	}
	if opts.Key != nil {
		if err := b.ahead(); err != nil {
			return Imported{}, err
		}
	}
	im := &importer{in: in, id: id, blocks: b, opts: opts, at: Imported{Tenant: b.header.id}}
	if b.header.id != id && !opts.OtherTenant {
		return im.at, invalid.New(ErrTenant, "tenant", invalid.Quote(id.String()), b.header.id.String()+", or OtherTenant")
	}
	if err := im.fit(ctx); err != nil {
		return im.at, err
	}
	err = im.run(ctx)
	return im.at, err
}

// Check reads a file to its end, without a store, and returns its content. key is ExportOptions.Key, or nil. If the
// file is incomplete or damaged, the error is a *LineError. It matches ErrKey if the file was written with another
// key. Check holds one block in memory.
func Check(ctx context.Context, r io.Reader, key []byte) (Exported, error) {
	b, err := openBlocks(r, key)
	if err != nil {
		return Exported{}, err
	}
	for {
		if err := ctxerr.Of(ctx); err != nil {
			return b.exported(), err
		}
		if err := b.next(); errors.Is(err, io.EOF) {
			return b.exported(), nil
		} else if err != nil {
			return b.exported(), err
		}
	}
}

func (b *blocks) exported() Exported {
	return Exported{Points: b.points, Datasets: b.counts, Unreadable: b.left, Lines: b.line, Bytes: b.offset}
}

// importer is one import.
type importer struct {
	in     inside.Store
	id     tenant.ID
	blocks *blocks
	opts   ImportOptions
	at     Imported
	points []*points.Raw // by the index of the dataset; nil if the dataset is not imported
}

func (im *importer) wanted(name string) bool {
	return im.opts.Datasets == nil || slices.Contains(im.opts.Datasets, name)
}

func (im *importer) run(ctx context.Context) error {
	from := im.opts.Continue
	for {
		if err := ctxerr.Of(ctx); err != nil {
			return err
		}
		err := im.blocks.next()
		if errors.Is(err, io.EOF) {
			if from.Line > 0 && im.at.Checkpoint.Line < from.Line {
				return fmt.Errorf("%w: it is at line %d, the file ends at line %d", errtype.ErrCheckpoint, from.Line, im.blocks.line)
			}
			im.at.Complete = true
			return nil
		}
		if err != nil {
			return err
		}
		at := im.blocks.checkpoint()
		switch {
		case at.Line > from.Line:
			if im.at.Checkpoint.Line < from.Line {
				return fmt.Errorf("%w: no block ends at line %d", errtype.ErrCheckpoint, from.Line)
			}
			if err := im.block(ctx); err != nil {
				return err
			}
		case at.Line == from.Line && at.Sum != from.Sum:
			return fmt.Errorf("%w: the block that ends at line %d has another sum", errtype.ErrCheckpoint, from.Line)
		default:
			im.at.Before += int64(len(im.blocks.block))
			im.at.Points += int64(len(im.blocks.block))
		}
		im.at.Checkpoint = at
		if im.opts.Progress != nil {
			im.opts.Progress(im.at)
		}
	}
}

// block stores the points of a block, dataset by dataset, and counts them when all have an outcome.
func (im *importer) block(ctx context.Context) error {
	next := im.at
	rest := im.blocks.block
	next.Points += int64(len(rest))
	for len(rest) > 0 {
		d := rest[0].d
		n := slices.IndexFunc(rest, func(r record) bool { return r.d != d })
		if n < 0 {
			n = len(rest)
		}
		if to := im.points[d.index]; to != nil {
			list := make([]points.RawPoint, n)
			for i, r := range rest[:n] {
				list[i] = r.point
			}
			for i, out := range to.Write(ctx, list, im.opts.DryRun) {
				if err := im.count(&next, out); err != nil {
					return &LineError{Line: rest[i].line, Err: err}
				} else if out.State != bt.Stored && im.opts.Refused != nil {
					im.opts.Refused(&LineError{Line: rest[i].line, Err: out.Err})
				}
			}
		}
		rest = rest[n:]
	}
	if next.Erased > im.at.Erased { // an entity was erased, or the tenant since
		if err := im.admitted(ctx); err != nil {
			return err
		}
	}
	im.at = next
	return nil
}

// admitted fails if the tenant is erased.
func (im *importer) admitted(ctx context.Context) error {
	d := im.blocks.block[0].d
	_, err := im.in.Raw(ctx, d.Dataset, im.id)
	return err
}

// count counts the outcome of a point. It returns an error if another attempt may have another outcome.
func (im *importer) count(at *Imported, out bt.Outcome) error {
	var n *int64
	switch {
	case out.State == bt.Stored:
		n = &at.Stored
	case out.State == bt.Unknown:
	case errors.Is(out.Err, tsdb.ErrExpired):
		n = &at.Expired
	case errors.Is(out.Err, tsdb.ErrExists):
		n = &at.Exists
	case errors.Is(out.Err, tsdb.ErrErased):
		n = &at.Erased
	case errors.Is(out.Err, points.ErrNoMerge), errors.Is(out.Err, tsdb.ErrInvalid):
		n = &at.Refused
	}
	if n == nil {
		return &tsdb.WriteError{Outcome: tsdb.Outcome{State: tsdb.State(out.State), Attempts: out.Attempts, Err: out.Err}}
	}
	*n++
	return nil
}
