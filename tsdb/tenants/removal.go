package tenants

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Part is a part of a table that can be removed. Dataset alone is a whole dataset. Dataset with Class, Tag or Rollup
// is a retention class, codec tag or rollup of that dataset. Class alone is the column families of a retention class
// that no dataset uses. The zero Part is invalid.
type Part struct {
	Dataset string `json:"dataset,omitempty"`
	Class   string `json:"class,omitempty"`
	Tag     string `json:"tag,omitempty"`
	Rollup  string `json:"rollup,omitempty"`
}

// String returns the part as it appears in messages.
func (p Part) String() string {
	switch {
	case p.Dataset == "":
		return "the families of retention class " + p.Class
	case p.whole():
		return "dataset " + p.Dataset
	}
	return p.entry().String() + " of dataset " + p.Dataset
}

// whole reports whether the part is a whole dataset.
func (p Part) whole() bool { return p.Class == "" && p.Tag == "" && p.Rollup == "" }

// entry returns the part in the catalogue's form.
func (p Part) entry() catalog.Part {
	return catalog.Part{Class: p.Class, Tag: p.Tag, Rollup: p.Rollup}
}

// check returns an error for an invalid part.
func (p Part) check() error {
	n := 0
	for _, name := range []string{p.Class, p.Tag, p.Rollup} {
		if name != "" {
			n++
		}
		if len(name) > 64 || strings.ContainsAny(name, "#!") {
			return invalid.New(tsdb.ErrInvalid, "part", invalid.Quote(name), "the name of a class, a tag or a rollup")
		}
	}
	if n > 1 || p.Dataset == "" && p.Class == "" {
		return invalid.New(tsdb.ErrInvalid, "part", fmt.Sprintf("%q", []string{p.Dataset, p.Class, p.Tag, p.Rollup}),
			"a dataset, a class, tag or rollup of a dataset, or a class alone")
	}
	if p.Class != "" {
		if err := (gc.Class{Name: p.Class, Policy: gc.Never()}).Validate(); err != nil {
			return fmt.Errorf("%w: %w", tsdb.ErrInvalid, err)
		}
	}
	if p.Dataset == "" {
		return nil
	}
	return rowkey.CheckDataset(p.Dataset)
}

// key returns the key of the part's removal row.
func (p Part) key() string {
	switch {
	case p.Dataset != "" && p.whole():
		return rowkey.MarkRows + catalog.DeletedDataset(p.Dataset)
	case p.Class != "":
		return rowkey.RemovalRows + p.Dataset + catalog.ClassRemoval(p.Class)
	case p.Tag != "":
		return rowkey.RemovalRows + p.Dataset + "#tag." + p.Tag
	}
	return rowkey.RemovalRows + p.Dataset + "#rollup." + p.Rollup
}

// RemoveOptions configure a removal. The zero value is useful: a removal that it begins deletes no data of a class, tag
// or rollup that a reader could still see. A call that continues a removal keeps By, Reason and Unexpired of the call
// that began it, and may add Unexpired; all other options are its own. It may change Settle during the wait; after the
// wait, a longer Settle fails with tsdb.ErrInvalid.
type RemoveOptions struct {
	// DryRun counts the rows that would be deleted, and changes nothing.
	DryRun bool
	// Unexpired removes a class, a tag or a rollup although some of its data has not expired. A dataset is always
	// removed with all its data.
	Unexpired bool
	// By says who asked for the removal, and Reason why, for the report: up to 256 bytes of UTF-8 each.
	By, Reason string
	// RowsPerSecond limits how fast rows are deleted. Zero is 20,000; negative is no limit.
	RowsPerSecond int
	// Settle is how long to wait between the mark and the deletion, like EraseOptions.Settle.
	Settle time.Duration
	// Progress is called after each step and each page, on the caller's goroutine. Nil disables it.
	Progress func(Progress)

	countPage, deletePage int // rows; 0 for the default
}

// common returns the options that erasures have, too.
func (o RemoveOptions) common() EraseOptions {
	return EraseOptions{
		DryRun: o.DryRun, By: o.By, Reason: o.Reason, RowsPerSecond: o.RowsPerSecond, Settle: o.Settle, Progress: o.Progress,
		countPage: o.countPage, deletePage: o.deletePage,
	}
}

// Remove deletes a dataset with all its rows, of all tenants: points, heads, rollups, marks of rollups, and its entry
// in the catalogue. Or it removes from a dataset a retention class, a codec tag or a rollup that is no longer used, or
// from the table the column families of a class that no dataset uses. It does not change rows of other datasets.
//
// For a dataset, Remove first writes a mark. Within 10 seconds, every open store of the table refuses the
// dataset's reads and writes with tsdb.ErrErased. Ensure and Verify refuse its schemas, and journals drop its
// points, whenever they are opened. When all earlier calls have ended, Remove counts the rows, deletes them page by
// page, and checks that none is left. The mark stays until Release, so nothing brings the dataset back.
//
// A class, a tag or a rollup must be retired first; Remove does it if Retire was not called. After the removal,
// Ensure and Verify refuse programs that still declare the part; writers that are already open are not stopped. So
// call Retire, deploy the programs without the part, and then call Remove.
//
// Removing a part is impossible while it is in use: it is the default for new points, profiles assign the class,
// another rollup is computed from the rollup, or some of its data has not expired and Unexpired is not set. The error
// then matches ErrImpossible, the report names the reasons, and nothing is changed. The families of a class stay
// until Remove is called for the class alone.
//
// Remove drops each family with one admin request, which the service cannot make conditional. Ensure and Remove check
// again afterwards. But a request whose connection was lost may drop the family even later: after Release has stopped
// the removal and Ensure has created the family again. So release the removal of a class only if no call of Remove is
// running, and do not use the class for some minutes.
//
// Remove saves its progress in one of the store's own rows. If Remove ends early, because ctx ended or the program
// crashed, call it again from any program: it continues. Of two calls at once, one ends with ErrTakenOver. For a
// dataset that is already deleted, Remove checks again and deletes rows that were written since. The error matches
// tsdb.ErrNotFound if neither the catalogue nor the table has the part.
//
// Remove sends one or two small requests for each tenant of the table, reads the rows that it removes twice, and
// holds one page in memory. To count a class or a tag, it reads the keys of the whole dataset. It needs conditional
// writes, and for families the admin rights to change the table.
func Remove(ctx context.Context, store *tsdb.Store, part Part, opts RemoveOptions) (_ Removal, err error) {
	ctx, rm, end, err := enterForPart(ctx, store, part)
	defer func() { end(err) }()
	if err != nil {
		return Removal{}, err
	}
	if rm.opts, err = opts.common().check(); err != nil {
		return Removal{}, err
	}
	rm.unexpired = opts.Unexpired
	err = rm.removePart(ctx)
	return rm.rec.Removal, err
}

// Retire records in the catalogue that a class, a tag or a rollup of a dataset will be removed. Programs then pass
// Ensure and Verify with the part or without it, so you can deploy them without it one by one. Profiles can no longer
// name the class. Retire deletes nothing: Remove does. The error matches ErrImpossible if the part is in use, as for
// Remove, except that unexpired data does not matter. It matches tsdb.ErrNotFound if the catalogue does not have the
// part. Retire may be repeated; Release reverts it.
func Retire(ctx context.Context, store *tsdb.Store, part Part) (err error) {
	ctx, rm, end, err := enterForPart(ctx, store, part)
	defer func() { end(err) }()
	if err != nil {
		return err
	}
	if part.Dataset == "" || part.whole() {
		return invalid.New(tsdb.ErrInvalid, "part", part.String(), "a class, a tag or a rollup of a dataset")
	}
	if rm.entry, err = rm.entryOf(ctx); err != nil {
		return err
	}
	if !rm.known() {
		return fmt.Errorf("%w: %s", tsdb.ErrNotFound, part)
	}
	if err := rm.findReasons(ctx); err != nil {
		return err
	}
	if err := rm.refused(); err != nil {
		return err
	}
	return rm.rewrite(ctx, func(d *catalog.Dataset) (bool, error) {
		if d.IsRetired(part.entry()) || !d.Has(part.entry()) {
			return false, nil
		}
		d.SetRetired(part.entry(), true)
		return true, nil
	})
}

// Release makes the name of a deleted dataset, or of a retired or removed class, tag or rollup, available again:
// Ensure then creates it. Points written to a dataset before its deletion do not come back: journals drop them.
//
// Release stops a removal of a class, a tag or a rollup that has not ended, such as one that never finds the part empty
// because programs continue to write. Its deleted data stays deleted, and the part stays in use. A running call of
// Remove ends with ErrTakenOver, but may still delete its current page. So with RemoveOptions.Unexpired, wait until
// Remove has returned before you use the part again.
//
// It fails while the deletion of a dataset has not ended, and with tsdb.ErrNotFound if there is nothing to release.
// Release may be repeated.
func Release(ctx context.Context, store *tsdb.Store, part Part) (err error) {
	ctx, rm, end, err := enterForPart(ctx, store, part)
	defer func() { end(err) }()
	if err != nil {
		return err
	}
	if rm.stored, err = rm.load(ctx, rm.key, &rm.rec); err != nil {
		return err
	}
	if !part.whole() {
		return rm.releasePart(ctx)
	}
	if !rm.doc.Exists() {
		return fmt.Errorf("%w: deletion of %s", tsdb.ErrNotFound, part)
	}
	return rm.lift(ctx, &rm.stored, &rm.rec, &rm.rec.State, part.String(), nil)
}

// releasePart makes the name of a part available again, and stops its removal if that has not ended.
func (rm *removal) releasePart(ctx context.Context) error {
	gaveUp := rm.doc.Exists()
	if gaveUp { // first: a call of Remove must not go on with a part that is in use again
		rm.rec.Run, rm.rec.State = rand.Text(), readmitted // a later Remove begins anew, also if this call ends half-way
		if err := rm.save(ctx, nil); err != nil {
			return err
		}
	}
	entry, err := rm.entryOf(ctx)
	if err != nil {
		return err
	}
	retired := entry.IsRetired(rm.part.entry())
	if !retired && !gaveUp {
		return fmt.Errorf("%w: retirement or removal of %s", tsdb.ErrNotFound, rm.part)
	}
	if retired {
		if err := rm.setRetired(ctx, false); err != nil {
			return err
		}
	}
	if gaveUp {
		return rm.forget(ctx)
	}
	return nil
}

// setRetired records in the catalogue whether the part, if the dataset has it, will be removed.
func (rm *removal) setRetired(ctx context.Context, retired bool) error {
	return rm.rewrite(ctx, func(d *catalog.Dataset) (bool, error) {
		if d.IsRetired(rm.part.entry()) == retired {
			return false, nil
		}
		d.SetRetired(rm.part.entry(), retired)
		return true, nil
	})
}

// enterForPart is enter for Remove, Retire and Release. It returns the operation's context and the function that ends
// the operation.
func enterForPart(ctx context.Context, store *tsdb.Store, part Part) (context.Context, *removal, func(error), error) {
	ctx, r, op, err := enterForAll(ctx, store, telemetry.DatasetRemove, tenant.ID{})
	if err == nil {
		err = part.check()
	}
	return ctx, newRemoval(r, part), op.End, err
}

// TenantRows are the rows of one tenant.
type TenantRows struct {
	Tenant tenant.ID `json:"tenant"`
	Rows   int64     `json:"rows"`
}

// Removal reports what a removal deletes. It marshals to JSON; String returns it as text.
type Removal struct {
	Part   Part  `json:"part"`
	DryRun bool  `json:"dry_run"`
	State  State `json:"state"` // Erased when it has ended
	// By and Reason are the RemoveOptions of the call that began the removal.
	By     string `json:"by"`
	Reason string `json:"reason"`
	// Started and Ended are times of the store's clock; zero if not reached yet.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Rows is how many rows are deleted; for a class or a tag, how many rows lose cells. Kinds has the same by kind,
	// and Tenants by tenant, for the first 1,000 tenants. OtherTenants is how many more tenants there are.
	Rows         int64        `json:"rows"`
	Kinds        []Counted    `json:"kinds"`
	Tenants      []TenantRows `json:"tenants"`
	OtherTenants int          `json:"other_tenants"`
	// Visible is how many of Rows have data that has not expired. It is not counted for a dataset.
	Visible int64 `json:"visible"`
	// Late is how many more rows were found after the deletion, and deleted too.
	Late int64 `json:"late"`
	// Families are the column families to delete.
	Families []string `json:"families"`
	// Unused are the retention classes of the removed part that no dataset will use. Their families stay, empty,
	// until Remove is called for the class alone.
	Unused []string `json:"unused"`
	// Impossible are the reasons why nothing can be removed now, in whole sentences.
	Impossible []string `json:"impossible"`
}

// String returns the report as text of several lines.
func (r Removal) String() string {
	var b reportText
	b.line("Removal of", r.Part.String())
	switch {
	case len(r.Impossible) > 0:
		b.line("State", "impossible, nothing was changed")
	case r.State == Erased:
		b.line("State", "removed")
	default:
		b.state(r.DryRun, string(r.State))
	}
	for _, s := range r.Impossible {
		fmt.Fprintf(&b, "  - %s\n", s)
	}
	b.texts(r.By, r.Reason)
	b.rows(r.Rows, r.Kinds)
	for _, t := range r.Tenants {
		fmt.Fprintf(&b, "  tenant %s: %d\n", t.Tenant, t.Rows)
	}
	if r.OtherTenants > 0 {
		fmt.Fprintf(&b, "  and of %d more tenants\n", r.OtherTenants)
	}
	b.some("Not expired", "%d rows", r.Visible)
	b.some("Came late", "%d rows, deleted too", r.Late)
	if len(r.Families) > 0 {
		b.line("Families", strings.Join(r.Families, ", "))
	}
	if len(r.Unused) > 0 {
		b.line("Unused", "families of "+strings.Join(r.Unused, ", ")+"; remove these classes, too, to drop them")
	}
	return b.String()
}
