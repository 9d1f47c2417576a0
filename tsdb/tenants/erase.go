package tenants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// EraseOptions configure an erasure. The zero value is useful.
type EraseOptions struct {
	// DryRun counts the rows, and changes nothing.
	DryRun bool
	// By says who asked for the erasure, and Reason why, for the report: up to 256 bytes of UTF-8 each.
	By, Reason string
	// Range deletes a tenant with one call of the admin API, DropRowRange, instead of page by page. It needs admin
	// rights, and is not recommended on a replicated instance. It has no effect for an entity.
	Range bool
	// RowsPerSecond limits how fast rows are deleted. Zero is 20,000; negative is no limit.
	RowsPerSecond int
	// Settle is how long to wait between the mark and the deletion, so that all calls in progress have ended. Zero is
	// 10 seconds plus the longer of the store's write and scan timeouts. For a store of package embedded to whose
	// folder no other program has ever attached, zero is one second. Set Settle if programs with longer timeouts write
	// to the table, or to 1 if no other store is open and no call is in progress. A call that continues an erasure may
	// change Settle during the wait. After the wait, a longer Settle fails with tsdb.ErrInvalid.
	Settle time.Duration
	// Keep is how long the mark stays after the erasure has ended. Zero is until the tenant or the entity is
	// readmitted. After the mark ends, a journal that still contains erased points writes them back.
	Keep time.Duration
	// Writers are writers of this process. Points in their journals are delivered or dropped, dead letters of erased
	// data are dropped, and the journals are rewritten, so that their files no longer hold what was dropped. To rewrite
	// a journal takes as much free disk space as it holds; meanwhile its writer takes no points. Writers of other
	// processes drop points of erased tenants themselves.
	Writers []*tsdb.Writer
	// Progress is called after each step and each page, on the caller's goroutine. Nil disables it.
	Progress func(Progress)

	countPage, deletePage int // rows; 0 for the default
}

// Progress reports how far an erasure has come.
type Progress struct {
	State State
	// Waiting is how long the erasure still waits, in the state "marked".
	Waiting time.Duration
	// Counted and Deleted are rows.
	Counted, Deleted int64
}

// Erase deletes everything of a tenant: the points of all its datasets, whether this program knows them or not;
// heads, rollups and all other rows with its prefix; its profile; the view that tsdb.Store.EnsureView makes; and its
// dead letters in the given writers. It changes no other tenant's rows. If the store has no admin client or no
// permission, or the view is protected from deletion, the view stays and the report names it.
//
// Erase first writes a mark for the tenant. Within 10 seconds, every open store of the table refuses the
// tenant's reads and writes with tsdb.ErrErased. Journals drop points of the tenant, whenever they are opened. When
// all earlier calls have ended, Erase counts the rows, deletes them page by page, and checks that none is left.
//
// The mark stores the progress. If Erase ends early, because ctx ended or the program crashed, call it again from any
// program: it continues with the first call's By, Reason and Keep. Of two calls at once, one ends with ErrTakenOver.
// For a tenant that is already erased, Erase checks again and deletes rows that were written since. It fails
// if new rows keep appearing. The report covers all calls together.
//
// Erase reads all keys of the tenant twice, and sends one write request for each 5,000 rows. It is bounded by ctx,
// and each page by the scan timeout.
func Erase(ctx context.Context, store *tsdb.Store, id tenant.ID, opts EraseOptions) (_ Report, err error) {
	ctx, r, end, err := enterFor(ctx, store, telemetry.TenantErase, id)
	defer func() { end(err) }()
	if err != nil {
		return Report{}, err
	}
	rng, err := rowkey.TenantRange(id)
	if err != nil {
		return Report{}, err
	}
	return newErasure(r, id, rng, nil, opts).erase(ctx, nil, "")
}

// EraseEntity is Erase for one entity of a tenant. An empty dataset selects all datasets of the tenant that have
// exactly the given key fields. fields holds the key fields by name, as text in the form that tsdb.Schema.Entity
// accepts: "7", not "007". Only writes of this entity are refused, during the erasure and after it. EraseEntity
// deletes points, heads, and rows of reserved kinds that are stored per entity. Sums over several entities stay. The
// error matches tsdb.ErrInvalid if the entity fits no dataset.
//
// The mark stores no key fields, only a hash of them. To continue an erasure, call EraseEntity with the same fields.
func EraseEntity(ctx context.Context, store *tsdb.Store, id tenant.ID, dataset string, fields map[string]string, opts EraseOptions) (_ Report, err error) {
	ctx, r, end, err := enterFor(ctx, store, telemetry.TenantErase, id)
	defer func() { end(err) }()
	if err != nil {
		return Report{}, err
	}
	fit, err := r.fitting(ctx, id, dataset, fields)
	if err != nil {
		return Report{}, err
	}
	return newErasure(r, id, rowkey.Range{}, fit, opts).erase(ctx, fields, dataset)
}

const maxText = 256

// check validates the options, and returns them with the defaults.
func (o EraseOptions) check() (EraseOptions, error) {
	if err := errors.Join(checkText("By", o.By, maxText), checkText("Reason", o.Reason, maxText)); err != nil {
		return o, err
	}
	if o.Settle < 0 {
		return o, invalid.New(tsdb.ErrInvalid, "Settle", o.Settle.String(), "0 for the default, or more")
	}
	if o.Keep < 0 {
		return o, invalid.New(tsdb.ErrInvalid, "Keep", o.Keep.String(), "0 for ever, or more")
	}
	for i, w := range o.Writers {
		if w == nil {
			return o, invalid.New(tsdb.ErrInvalid, fmt.Sprintf("Writers[%d]", i), "nil", "a writer")
		}
	}
	o.RowsPerSecond = cmp.Or(o.RowsPerSecond, 20_000)
	o.countPage, o.deletePage = cmp.Or(o.countPage, countPage), cmp.Or(o.deletePage, deletePage)
	return o, nil
}
