package tenants

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Part is what can be removed from a table: a dataset, or with one more name a retention class, a codec tag or a rollup of that
// dataset. Class without Dataset stands for the column families of a retention class that no dataset uses. The zero Part is
// none.
type Part struct {
	Dataset string `json:"dataset,omitempty"`
	Class   string `json:"class,omitempty"`
	Tag     string `json:"tag,omitempty"`
	Rollup  string `json:"rollup,omitempty"`
}

// String returns the part as messages name it.
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

// entry returns the part as the catalogue knows it.
func (p Part) entry() catalog.Part {
	return catalog.Part{Class: p.Class, Tag: p.Tag, Rollup: p.Rollup}
}

// check refuses what is no part.
func (p Part) check() error {
	n := 0
	for _, name := range []string{p.Class, p.Tag, p.Rollup} {
		if name != "" {
			n++
		}
		if len(name) > 64 || strings.ContainsAny(name, "#!") {
			return invalid.New(ErrInvalid, "part", invalid.Quote(name), "the name of a class, a tag or a rollup")
		}
	}
	if n > 1 || p.Dataset == "" && p.Class == "" {
		return invalid.New(ErrInvalid, "part", fmt.Sprintf("%q", []string{p.Dataset, p.Class, p.Tag, p.Rollup}),
			"a dataset, a class, tag or rollup of a dataset, or a class alone")
	}
	if p.Class != "" {
		if err := (gc.Class{Name: p.Class, Policy: gc.Never()}).Validate(); err != nil {
			return err
		}
	}
	if p.Dataset == "" {
		return nil
	}
	return rowkey.CheckDataset(p.Dataset)
}

// key returns the row of the part's removal.
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

// RemoveOptions are what a removal may decide. The zero value is good. A removal that it begins takes nothing of a class, tag or
// rollup that a reader could still see; one that it goes on with takes what that one was begun to take.
type RemoveOptions struct {
	// DryRun counts what would go, and changes nothing.
	DryRun bool
	// Unexpired removes a class, a tag or a rollup although some of what it holds has not expired. A dataset goes whole in any
	// case.
	Unexpired bool
	// By is who asked for the removal, and Reason why, for the report: up to 256 bytes of UTF-8 each.
	By, Reason string
	// RowsPerSecond is how fast rows are deleted at most. Zero is 20,000; negative is without a limit.
	RowsPerSecond int
	// Settle is how long to wait between the mark and the deletion, as EraseOptions.Settle.
	Settle time.Duration
	// Progress is called after each step and each page, on the caller's goroutine. Nil is for nobody.
	Progress func(Progress)

	countPage, deletePage int // rows; 0 for the default
}

func (o RemoveOptions) check() (RemoveOptions, error) {
	if err := errors.Join(checkText("By", o.By, maxText), checkText("Reason", o.Reason, maxText)); err != nil {
		return o, err
	}
	if o.Settle < 0 {
		return o, invalid.New(ErrInvalid, "Settle", o.Settle.String(), "0 for the default, or more")
	}
	o.RowsPerSecond = cmp.Or(o.RowsPerSecond, 20_000)
	o.countPage, o.deletePage = cmp.Or(o.countPage, countPage), cmp.Or(o.deletePage, deletePage)
	return o, nil
}

// Remove deletes a dataset with all its rows, of all tenants: points, heads, rollups, marks of rollups, and its entry in the
// catalogue. Or it removes from a dataset a retention class, a codec tag or a rollup that nothing uses any more, or from the
// table the column families of a class that no dataset uses. Rows of other datasets stay as they are, byte for byte.
//
// A dataset is marked first. Every open store of the table refuses its reads and writes from then on, within tsdb.ErasedWithin,
// with tsdb.ErrDatasetDeleted, Ensure and Verify refuse schemas of it, and journals that still hold points of it drop them, whenever
// they are opened. Once all that was under way has ended Remove counts what is there, deletes it page by page, and looks again
// whether nothing is left. The mark stays until Release, so nothing brings the dataset back.
//
// A class, a tag or a rollup is retired first, as Retire does, if it is not yet. Programs that still declare it are refused once it
// is removed, when they call Ensure or Verify; writers that are open by then are not stopped. So call Retire, deploy the programs
// without the part, and then call Remove. It is impossible while something uses the part: new points are written in the class or
// with the tag by default, profiles assign the class, another rollup is computed from the rollup, or some of
// what it holds has not expired and the options do not say Unexpired. The error then matches ErrImpossible, the report names the
// reasons, and nothing is changed. The families of a class stay until Remove is called for the class alone.
//
// Each family is dropped by one admin request, which the service does not make conditional. Ensure and Remove look again afterwards, but a
// call that lost its connection may drop a family later than that, when Release has given up the removal and Ensure has created the family
// anew. So release the removal of a class only when no call of Remove is under way, and do not use the class for some minutes.
//
// How far it is stands in a row of the store's own. Where it ends early, with ctx or by a crash, call it again, from anywhere: it
// goes on. Of two calls at once one ends with ErrTakenOver. A call for a dataset that is deleted looks again, and deletes what has
// come since. A part that is neither in the catalogue nor in the table is tsdb.ErrNotFound.
//
// It looks for each tenant of the table, one or two small requests each, reads what it removes twice, and holds one page in
// memory; counting a class or a tag reads the keys of the whole dataset. It needs conditional writes, and for families the admin
// rights to change the table.
func Remove(ctx context.Context, store *tsdb.Store, part Part, opts RemoveOptions) (_ Removal, err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.DatasetRemove, telemetry.Subject{})
	defer func() { op.End(err) }()
	r, err := enterForAll(ctx, store)
	if err != nil {
		return Removal{}, err
	}
	if err := part.check(); err != nil {
		return Removal{}, err
	}
	rm := removal{room: r, part: part}
	if rm.opts, err = opts.check(); err != nil {
		return Removal{}, err
	}
	err = rm.run(ctx)
	return rm.rec.Removal, err
}

// Retire notes in the catalogue that a class, a tag or a rollup of a dataset is on its way out. From then on programs pass Ensure and
// Verify with it or without it, so they can be deployed without it one by one, and no profile can name the class. Nothing is
// deleted: Remove does that. Its error matches ErrImpossible as that of Remove does, expired or not, and tsdb.ErrNotFound where the
// catalogue does not have the part. It may be repeated; Release takes it back.
func Retire(ctx context.Context, store *tsdb.Store, part Part) (err error) {
	ctx, rm, end, err := enterForPart(ctx, store, part)
	defer func() { end(err) }()
	if err != nil {
		return err
	}
	if part.Dataset == "" || part.whole() {
		return invalid.New(ErrInvalid, "part", part.String(), "a class, a tag or a rollup of a dataset")
	}
	entry, err := rm.entryOf(ctx)
	if err != nil {
		return err
	}
	if !entry.Has(part.entry()) {
		return fmt.Errorf("%w: %s", tsdb.ErrNotFound, part)
	}
	if err := rm.impossible(ctx, entry); err != nil {
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

// Release lets the name of a dataset that was deleted, or of a class, a tag or a rollup that was retired or removed, be used again:
// Ensure then makes it anew. What was written to a dataset before its deletion does not come back: journals drop what they still hold
// of that.
//
// A removal of a class, a tag or a rollup that has not ended is given up, such as one that ends with ErrRemains again and again because
// programs go on writing: what it has deleted stays deleted, and the part stays in use. A call of Remove that is under way ends with
// ErrTakenOver, but for the page that it is deleting; with RemoveOptions.Unexpired let it end before the part is used again.
//
// Its error matches ErrErasing while the deletion of a dataset has not ended, and tsdb.ErrNotFound where there is nothing to release.
// It may be repeated.
func Release(ctx context.Context, store *tsdb.Store, part Part) (err error) {
	ctx, rm, end, err := enterForPart(ctx, store, part)
	defer func() { end(err) }()
	if err != nil {
		return err
	}
	if err := rm.load(ctx); err != nil {
		return err
	}
	switch {
	case !part.whole():
		return rm.releasePart(ctx)
	case rm.rec.State != "" && rm.rec.State != Erased && rm.rec.State != Readmitted:
		return fmt.Errorf("%w: %s", ErrErasing, part)
	case rm.rec.State == "":
		return fmt.Errorf("%w: deletion of %s", tsdb.ErrNotFound, part)
	case rm.rec.State == Erased:
		next, err := catalog.MarkChanges.Next(ctx, rm.Table)
		if err != nil {
			return rm.Explain(err)
		}
		rm.rec.State = Readmitted
		if err := rm.save(ctx, func(mut *bigtable.Mutation) { catalog.LiftMark(mut, next, nil) }); err != nil {
			return err
		}
	}
	return rm.announce(ctx, mark{key: part.key()})
}

// releasePart lets the name of a part be used again, and gives up its removal where that has not ended.
func (rm *removal) releasePart(ctx context.Context) error {
	gaveUp := rm.doc.Exists()
	if gaveUp { // first: a call of Remove must not go on with a part that is in use again
		rm.rec.Run, rm.rec.State = rand.Text(), Readmitted // a later Remove begins anew, also if this call ends half-way
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
		return fmt.Errorf("%w: %s is not retired", tsdb.ErrNotFound, rm.part)
	}
	if retired {
		if err := rm.unretire(ctx); err != nil {
			return err
		}
	}
	if gaveUp {
		return rm.forget(ctx)
	}
	return nil
}

// unretire takes back that the part is retired.
func (rm *removal) unretire(ctx context.Context) error {
	return rm.rewrite(ctx, func(d *catalog.Dataset) (bool, error) {
		if !d.IsRetired(rm.part.entry()) {
			return false, nil
		}
		d.SetRetired(rm.part.entry(), false)
		return true, nil
	})
}

// enterForPart is enter for Retire and Release, with their operation's context and what ends it.
func enterForPart(ctx context.Context, store *tsdb.Store, part Part) (context.Context, *removal, func(error), error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.DatasetRemove, telemetry.Subject{})
	r, err := enterForAll(ctx, store)
	if err == nil {
		err = part.check()
	}
	return ctx, &removal{room: r, part: part}, op.End, err
}

// TenantRows are the rows of one tenant.
type TenantRows struct {
	Tenant tenant.ID `json:"tenant"`
	Rows   int64     `json:"rows"`
}

// String returns tenant and rows in one line.
func (t TenantRows) String() string { return fmt.Sprintf("tenant %s: %d", t.Tenant, t.Rows) }

// Removal says what a removal takes away. It marshals to JSON; String is the same as text.
type Removal struct {
	Part   Part  `json:"part"`
	DryRun bool  `json:"dry_run"`
	State  State `json:"state"` // Erased when it has ended
	// By and Reason are those of the RemoveOptions that the removal was begun with.
	By     string `json:"by"`
	Reason string `json:"reason"`
	// Started and Ended are times of the store's clock; zero for not yet.
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Rows are those that go, or of a class or a tag those that cells are deleted from. Kinds is the same by kind, and Tenants by
	// tenant, for the first 1,000 tenants; OtherTenants is how many more there are.
	Rows         int64        `json:"rows"`
	Kinds        []Counted    `json:"kinds"`
	Tenants      []TenantRows `json:"tenants"`
	OtherTenants int          `json:"other_tenants"`
	// Visible are those of Rows that hold something that has not expired; not counted for a dataset, of which all goes.
	Visible int64 `json:"visible"`
	// Late are rows that were found after the deletion, and deleted too.
	Late int64 `json:"late"`
	// Families are the column families that go.
	Families []string `json:"families"`
	// Unused are the retention classes of what goes that no dataset will use. Their families stay, empty, until Remove is called
	// for the class alone.
	Unused []string `json:"unused"`
	// Impossible are the reasons why nothing can be removed now, in whole sentences.
	Impossible []string `json:"impossible"`
}

// String returns the report as text of several lines.
func (r Removal) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s"+format+"\n", append([]any{name + ":"}, args...)...)
	}
	line("Removal of", "%s", r.Part)
	switch {
	case len(r.Impossible) > 0:
		line("State", "impossible, nothing was changed")
	case r.DryRun:
		line("State", "counted only, nothing was changed")
	case r.State == Erased:
		line("State", "removed")
	default:
		line("State", "%s", r.State)
	}
	for _, s := range r.Impossible {
		fmt.Fprintf(&b, "  - %s\n", s)
	}
	for _, t := range []struct{ name, text string }{{"Asked for by", r.By}, {"Reason", r.Reason}} {
		if t.text != "" {
			line(t.name, "%s", t.text)
		}
	}
	line("Rows", "%d", r.Rows)
	for _, k := range r.Kinds {
		fmt.Fprintf(&b, "  %s\n", k)
	}
	for _, t := range r.Tenants {
		fmt.Fprintf(&b, "  %s\n", t)
	}
	if r.OtherTenants > 0 {
		fmt.Fprintf(&b, "  and of %d more tenants\n", r.OtherTenants)
	}
	if r.Visible > 0 {
		line("Not expired", "%d rows", r.Visible)
	}
	if r.Late > 0 {
		line("Came late", "%d rows, deleted too", r.Late)
	}
	if len(r.Families) > 0 {
		line("Families", "%s", strings.Join(r.Families, ", "))
	}
	if len(r.Unused) > 0 {
		line("Unused", "families of %s; remove these classes, too, to drop them", strings.Join(r.Unused, ", "))
	}
	return b.String()
}
