package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ImportOptions are what an import may decide. The zero value imports all of the file into datasets that the store has.
type ImportOptions struct {
	// OtherTenant lets the file be one of another tenant than the one to import into. Without it that is refused with ErrTenant.
	OtherTenant bool
	// Create adds the datasets, codec tags and retention classes that the catalogue lacks, as Ensure does and with its rights.
	// Without it a file whose datasets do not fit is refused with tsdb.ErrSchemaConflict.
	Create bool
	// Datasets are the names of the only datasets to import. Nil is all of the file.
	Datasets []string
	// DryRun reads and checks all of the file, compares it with the catalogue, and writes nothing. What Stored counts then
	// would have been sent.
	DryRun bool
	// Key is the ExportOptions.Key that the file was made with; nil where it was made without. Another one is refused with ErrKey.
	// With a key nothing of a block is used, the header included, before its sum is checked.
	Key []byte
	// Continue goes on behind a checkpoint of Imported. What comes before it is read and checked, and not stored again. The zero
	// Checkpoint is the start.
	Continue Checkpoint
	// Progress is told after each block, on the caller's goroutine. Nil is for nobody.
	Progress func(Imported)
	// Refused is told of each point that cannot be stored and is passed over for it, with a *LineError. Nil is for nobody.
	Refused func(error)
}

// Imported is what became of the points of a file. It marshals to JSON.
type Imported struct {
	// Tenant is whose points the file holds.
	Tenant tenant.ID `json:"tenant"`
	// Points are those that were read. Each but those of datasets that were not asked for is counted once more below.
	Points int64 `json:"points"`
	// Stored are those that are in the store now, those that had been there with an equal value included.
	Stored int64 `json:"stored"`
	// Before are those from before the checkpoint.
	Before int64 `json:"before"`
	// Expired are those that would be invisible at once, and were passed over.
	Expired int64 `json:"expired"`
	// Exists are those of a first-wins dataset where another value is stored, or that would change a fixed field.
	Exists int64 `json:"exists"`
	// Erased are those of entities that were erased, and were passed over.
	Erased int64 `json:"erased"`
	// Refused are those that the dataset cannot take: too large for its heads, or not to be merged with what is there.
	Refused int64 `json:"refused"`
	// Complete says that the file was read to its end.
	Complete bool `json:"complete"`
	// Checkpoint is the last block whose points are all accounted for.
	Checkpoint Checkpoint `json:"checkpoint"`
}

// Import stores the points of a file for a tenant, block by block; a block that is damaged is not begun. Points keep their
// codec's tag and their retention class. They take the way of all writes: heads are kept, the first write wins where it is to,
// records are merged where they are to be, an erased tenant is refused. Importing a file again changes nothing.
//
// Points that can never be stored are counted and passed over. Where the service refuses a write, or its outcome is unknown,
// Import ends with a *LineError of the first such point that matches tsdb.ErrRejected or tsdb.ErrUnknown; some points of that block may be stored.
// What it returns says how far it came in any case, and where to go on.
//
// It costs one bulk request for every block of up to 1,000 points, conditional requests where the dataset needs them, and
// memory for a block. It is bounded by ctx; each block by the timeout of scans.
func Import(ctx context.Context, store *tsdb.Store, id tenant.ID, r io.Reader, opts ImportOptions) (_ Imported, err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.TransferImport, telemetry.Subject{Tenant: id.String()})
	defer func() { op.End(err) }()
	in, err := inside.OfStore(store)
	if err != nil {
		return Imported{}, err
	}
	if id.IsZero() {
		return Imported{}, invalid.New(tenant.ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
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

// Check reads a file to its end, without a store, and returns what it holds. Key is that of the ExportOptions, nil for none. Its error is a
// *LineError where the file is not whole, and matches ErrKey where it was made with another key. It costs memory for a block.
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
	points []inside.Points // by the index of the dataset; nil for one that is not asked for
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
				return fmt.Errorf("%w: it is at line %d, the file ends at line %d", ErrContinue, from.Line, im.blocks.line)
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
				return fmt.Errorf("%w: no block ends at line %d", ErrContinue, from.Line)
			}
			if err := im.block(ctx); err != nil {
				return err
			}
		case at.Line == from.Line && at.Sum != from.Sum:
			return fmt.Errorf("%w: the block that ends at line %d has another sum", ErrContinue, from.Line)
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

// block stores the points of a block, dataset by dataset, and counts them once all are accounted for.
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
			points := make([]inside.Point, n)
			for i, r := range rest[:n] {
				points[i] = r.point
			}
			for i, out := range to.Write(ctx, points, im.opts.DryRun) {
				if err := im.count(&next, out); err != nil {
					return &LineError{Line: rest[i].line, Err: err}
				} else if out.State != bt.Stored && im.opts.Refused != nil {
					im.opts.Refused(&LineError{Line: rest[i].line, Err: out.Err})
				}
			}
		}
		rest = rest[n:]
	}
	if next.Erased > im.at.Erased { // of an entity, or of the tenant by now
		if err := im.admitted(ctx); err != nil {
			return err
		}
	}
	im.at = next
	return nil
}

// admitted refuses to go on with a tenant that is erased.
func (im *importer) admitted(ctx context.Context) error {
	d := im.blocks.block[0].d
	_, err := im.in.Points(ctx, d.Dataset, im.id)
	return err
}

// count counts what became of a point. It returns an error where that may be another one the next time.
func (im *importer) count(at *Imported, out bt.Outcome) error {
	switch {
	case out.State == bt.Stored:
		at.Stored++
	case out.State == bt.Unknown:
	case errors.Is(out.Err, tsdb.ErrExpired):
		at.Expired++
		return nil
	case errors.Is(out.Err, tsdb.ErrExists):
		at.Exists++
		return nil
	case errors.Is(out.Err, tsdb.ErrErased):
		at.Erased++
		return nil
	case errors.Is(out.Err, tsdb.ErrNoMerge), errors.Is(out.Err, tsdb.ErrInvalid):
		at.Refused++
		return nil
	}
	if out.State == bt.Stored {
		return nil
	}
	return &tsdb.WriteError{Outcome: tsdb.Outcome{State: tsdb.State(out.State), Attempts: out.Attempts, Err: out.Err}}
}
