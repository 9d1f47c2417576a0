package tenants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// EraseOptions are what an erasure may decide. The zero value is good.
type EraseOptions struct {
	// DryRun counts what is there, and changes nothing.
	DryRun bool
	// By is who asked for the erasure, and Reason why, for the report: up to 256 bytes of UTF-8 each.
	By, Reason string
	// Range deletes a tenant with one call of the admin API, DropRowRange, in the place of pages. It needs admin rights and
	// is not advised where the instance is replicated. It does nothing for an entity.
	Range bool
	// RowsPerSecond is how fast pages are deleted at most. Zero is 20,000; negative is without a limit.
	RowsPerSecond int
	// Settle is how long to wait between the mark and the deletion, so that all that was under way has ended. Zero is
	// tsdb.ErasedWithin and the longer one of the store's timeouts of writes and scans; for a store of package embedded, which
	// no other program can have open, it is a second for the calls of this one. Set it where programs with longer
	// timeouts write to the table, or to 1 where no other store is open and nothing is under way. A call that continues an
	// erasure may change it while that waits; later one that is longer than what was waited is refused with ErrInvalid.
	Settle time.Duration
	// Keep is how long the mark stays after the erasure has ended. Zero is until the tenant or the entity is
	// readmitted. Afterwards a journal that still holds points of what was erased brings them back.
	Keep time.Duration
	// Writers are writers of this process: what their journals hold is delivered or dropped, and their dead letters of what is
	// erased are dropped, and their journals are written anew, as tsdb.Writer.ScrubJournal does. Writers of other processes drop points of erased tenants by themselves.
	Writers []*tsdb.Writer
	// DropView is called after the rows are gone, where the tenant's profile has a view. Nil deletes the view that
	// tsdb.Store.EnsureView makes, whatever the profile says; where the store has no admin client, or not the right, or the view
	// is protected from deletion, it stays and the report names it.
	DropView func(ctx context.Context, store *tsdb.Store, id tenant.ID) error
	// Progress is told after each step and each page, on the caller's goroutine. Nil is for nobody.
	Progress func(Progress)

	countPage, deletePage int // rows; 0 for the default
}

// Progress is how far an erasure is.
type Progress struct {
	State State
	// Waiting is how long is left to wait, in the state Marked.
	Waiting time.Duration
	// Counted and Deleted are rows.
	Counted, Deleted int64
}

// Erase deletes everything of a tenant: the points of all its datasets, known to this program or not, heads, rollups and
// whatever else has its prefix, its profile, and its dead letters in the writers that are given. Nobody else's row is touched.
//
// It first marks the tenant in the store's own rows. Every open store of the table refuses its reads and writes from then
// on, within tsdb.ErasedWithin, with tsdb.ErrErased; journals that still hold points of it drop them, whenever they are opened. Once all that
// was under way has ended it counts what is there, deletes it page by page, and looks again whether nothing is left.
//
// How far it is stands in the mark. Where it ends early, with ctx or by a crash, call it again, from anywhere: it goes on,
// with the By, Reason and Keep that it was begun with. Of two calls at once one ends with ErrTakenOver. Called for a tenant that is erased it looks again,
// and deletes what has come since. Its error matches ErrRemains where rows keep coming. The report is that of all calls
// together.
//
// It reads all keys of the tenant twice, and writes a request for each 5,000 rows. It is bounded by ctx; each page by the
// timeout of scans.
func Erase(ctx context.Context, store *tsdb.Store, id tenant.ID, opts EraseOptions) (_ Report, err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.TenantErase, telemetry.Subject{Tenant: id.String()})
	defer func() { op.End(err) }()
	r, err := enterFor(ctx, store, id)
	if err != nil {
		return Report{}, err
	}
	rng, err := rowkey.TenantRange(id)
	if err != nil {
		return Report{}, err
	}
	e := erasure{room: r, id: id, opts: opts, all: rng}
	return e.run(ctx)
}

// EraseEntity is Erase for one entity of a tenant: in the dataset of that name, or for the empty name in all datasets of the
// tenant whose key fields are those that are given, by name, with the usual text of their values (as tsdb.Schema.Entity takes it: "7", not
// "007"). Only writes of the entity are refused meanwhile and afterwards.
// It takes points, heads, and rows of reserved kinds that are kept for each entity; sums over several entities stay. An
// entity that fits no dataset is refused with ErrInvalid.
//
// Its mark holds no key fields but a hash of them: to go on with an erasure, call it with the same ones.
func EraseEntity(ctx context.Context, store *tsdb.Store, id tenant.ID, dataset string, fields map[string]string, opts EraseOptions) (_ Report, err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.TenantErase, telemetry.Subject{Tenant: id.String()})
	defer func() { op.End(err) }()
	r, err := enterFor(ctx, store, id)
	if err != nil {
		return Report{}, err
	}
	fit, err := r.fitting(ctx, id, dataset, fields)
	if err != nil {
		return Report{}, err
	}
	e := erasure{room: r, id: id, opts: opts, fit: fit, fields: fields, dataset: dataset}
	return e.run(ctx)
}

const maxText = 256

// check refuses options that nothing can be made of, and returns them with the defaults.
func (o EraseOptions) check(r room) (EraseOptions, error) {
	if err := errors.Join(checkText("By", o.By, maxText), checkText("Reason", o.Reason, maxText)); err != nil {
		return o, err
	}
	if o.Settle < 0 {
		return o, invalid.New(ErrInvalid, "Settle", o.Settle.String(), "0 for the default, or more")
	}
	if o.Keep < 0 {
		return o, invalid.New(ErrInvalid, "Keep", o.Keep.String(), "0 for ever, or more")
	}
	for i, w := range o.Writers {
		if w == nil {
			return o, invalid.New(ErrInvalid, fmt.Sprintf("Writers[%d]", i), "nil", "a writer")
		}
	}
	o.RowsPerSecond = cmp.Or(o.RowsPerSecond, 20_000)
	o.countPage, o.deletePage = cmp.Or(o.countPage, countPage), cmp.Or(o.deletePage, deletePage)
	return o, nil
}
