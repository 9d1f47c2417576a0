package tenants

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// record is the document of a mark: the report so far, and what only those who go on need.
type record struct {
	Report
	// Run names the call that goes on with the erasure. A call that finds another's has been taken over.
	Run string `json:"run"`
	// Next is the key from which counting or deleting goes on.
	Next []byte `json:"next,omitempty"`
	// Deleted are the rows of pages that were deleted.
	Deleted int64 `json:"deleted"`
	// Settle and Keep are those of the call that began.
	Settle time.Duration `json:"settle"`
	Keep   time.Duration `json:"keep"`
}

// mark is the mark of a tenant, or of an entity, as it is stored.
type mark struct {
	key  string
	doc  catalog.Document
	rec  record
	name string // of an entity; empty for a tenant
}

// mark reads the mark of a tenant, or that of an entity by its name.
func (r room) mark(ctx context.Context, id tenant.ID, name string) (mark, error) {
	m := mark{key: rowkey.MarkRows + id.String(), name: name}
	if name != "" {
		m.key += "#" + name
	}
	doc, err := catalog.LoadDocument(ctx, r.Table, m.key)
	if err != nil || !doc.Exists() {
		return m, r.Explain(err)
	}
	m.doc = doc
	if err := json.Unmarshal(doc.JSON, &m.rec); err != nil {
		return m, fmt.Errorf("tenants: the erasure mark of %s does not decode: %w", id, err)
	}
	return m, nil
}

// inForce reports whether stores refuse what the mark is of.
func (m *mark) inForce(now time.Time) bool {
	return m.doc.Exists() && m.rec.State != Readmitted && (m.rec.Until.IsZero() || now.Before(m.rec.Until))
}

// save writes the record where it is still this call's, and adds what also adds. It returns ErrTakenOver where it is not.
func (r room) save(ctx context.Context, m *mark, also func(*bigtable.Mutation)) error {
	rec := m.rec
	rec.Fields = nil // the mark keeps no key of an entity
	doc, ok, err := catalog.SaveDocument(ctx, r.Table, m.key, rec.full(), m.doc, also)
	switch {
	case err != nil:
		return r.Explain(err)
	case !ok:
		return ErrTakenOver
	}
	m.doc = doc
	return nil
}

// full is the record with each of its members, also those that are empty, so that what an earlier one said does not stay.
func (rec record) full() any {
	text, err := json.Marshal(rec)
	if err != nil {
		return rec
	}
	all := map[string]any{
		"by": "", "reason": "", "verified": time.Time{}, "ended": time.Time{}, "until": time.Time{}, "profile": false,
		"late": 0, "dead_letters": 0, "journals": 0, "next": nil, "dataset": "",
	}
	var mine map[string]json.RawMessage
	if err := json.Unmarshal(text, &mine); err != nil {
		return rec
	}
	for k, v := range mine {
		all[k] = v
	}
	return all
}

// announce makes all stores read a mark again, this one at once.
func (r room) announce(ctx context.Context, m mark) error {
	if err := catalog.MarkChanges.Append(ctx, r.Table, strings.TrimPrefix(m.key, rowkey.MarkRows)); err != nil {
		return r.Explain(err)
	}
	_, err := r.Marks(ctx)
	return err
}

// roomForMark refuses a mark that would be one too many, and takes away those that are over.
func (e *erasure) roomForMark(ctx context.Context) error {
	all, err := e.Marks(ctx)
	if err != nil {
		return err
	}
	n, mine, now := 0, 0, e.Earliest()
	var over, gone []catalog.Mark
	for m := range all {
		switch {
		case m.Gone:
			gone = append(gone, m)
		case !m.Over(now):
			if n++; m.Tenant == e.id.String() {
				mine++
			}
		case len(over) < 100: // the others are left to the next one
			over = append(over, m)
		}
	}
	switch {
	case n >= mostMarks:
		return invalid.New(ErrInvalid, "marks", fmt.Sprint(n), fmt.Sprintf("fewer than %d, each of which every store holds; lift some by ReadmitEntity", mostMarks))
	case mine >= mostOfTenant:
		return invalid.New(ErrInvalid, "marks of tenant "+e.id.String(), fmt.Sprint(mine), fmt.Sprintf("fewer than %d; lift some by ReadmitEntity", mostOfTenant))
	}
	if err := e.forgetLifts(ctx, gone, n); err != nil {
		return err
	}
	if len(over) > 0 {
		if now, err = e.Confirmed(ctx); errors.Is(err, tsdb.ErrClock) {
			return nil // it is reported, and marks that are over do no harm
		} else if err != nil {
			return err
		}
	}
	var lifted []string
	for _, o := range over {
		id, err := tenant.Parse(o.Tenant)
		if err != nil || id == e.id && o.Name == e.name {
			continue
		}
		m, err := e.room.mark(ctx, id, o.Name)
		if err != nil || !m.doc.Exists() || m.inForce(now) {
			continue // it holds nobody up, or has begun anew
		}
		lift := func(mut *bigtable.Mutation) { catalog.LiftMark(mut, 0, nil) }
		if err := e.save(ctx, &m, lift); err != nil && !errors.Is(err, ErrTakenOver) {
			return err
		}
		lifted = append(lifted, o.Row())
	}
	if len(lifted) == 0 {
		return nil
	}
	return e.Explain(catalog.MarkChanges.Append(ctx, e.Table, lifted...))
}

// forgetLifts takes away the oldest of what stands of lifted marks, where stores hold as much of them and of marks as they may.
func (e *erasure) forgetLifts(ctx context.Context, gone []catalog.Mark, marks int) error {
	const most = 100
	if len(gone) == 0 || len(gone)+marks < mostMarks {
		return nil
	}
	slices.SortFunc(gone, func(a, b catalog.Mark) int { return cmp.Compare(a.Lifted, b.Lifted) })
	var names []string
	for _, g := range gone[:min(len(gone), most)] {
		name := g.Row()
		m, doc, err := catalog.LoadMark(ctx, e.Table, name)
		if err != nil {
			return e.Explain(err)
		}
		if !doc.Exists() || !m.Gone || m.Lifted != g.Lifted {
			continue // it was made again, or lifted again
		}
		_, ok, err := catalog.SaveDocument(ctx, e.Table, rowkey.MarkRows+name, struct{}{}, doc, catalog.ForgetLift)
		if err != nil {
			return e.Explain(err)
		}
		if ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return e.Explain(catalog.MarkChanges.Append(ctx, e.Table, names...))
}

// The bounds of marks in force, which tests lower.
var mostMarks, mostOfTenant = catalog.MostMarks, catalog.MostOfTenant

// Erasure returns the report of a tenant's erasure as it stands. Its error matches tsdb.ErrNotFound where there never was one.
// It costs one read.
func Erasure(ctx context.Context, store *tsdb.Store, id tenant.ID) (_ Report, err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.TenantProfile, telemetry.Subject{Tenant: id.String()})
	defer func() { op.End(err) }()
	r, err := enterFor(ctx, store, id)
	if err != nil {
		return Report{}, err
	}
	m, err := r.mark(ctx, id, "")
	if err == nil && !m.doc.Exists() {
		err = fmt.Errorf("%w: erasure of tenant %s", tsdb.ErrNotFound, id)
	}
	return m.rec.Report, err
}

// Readmit lifts the mark of a tenant whose erasure has ended; ReadmitEntity lifts that of an entity. Stores take its points again
// within tsdb.ErasedWithin. What was written before the erasure does not come back: journals drop what they still hold of that,
// whenever they are opened. They also drop what a program took that could not read the table from before the erasure on. One case
// is not covered: what a program took before it had ever read the table's marks counts as new. Its error
// matches ErrErasing where the erasure has not ended, and tsdb.ErrNotFound where there is none. It may be repeated.
func Readmit(ctx context.Context, store *tsdb.Store, id tenant.ID) (err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.TenantReadmit, telemetry.Subject{Tenant: id.String()})
	defer func() { op.End(err) }()
	r, err := enterFor(ctx, store, id)
	if err != nil {
		return err
	}
	m, err := r.mark(ctx, id, "")
	switch {
	case err != nil:
		return err
	case !m.doc.Exists():
		return fmt.Errorf("%w: erasure of tenant %s", tsdb.ErrNotFound, id)
	}
	return r.readmit(ctx, id, m, nil)
}

// readmit lifts a mark, that of an entity with these hashes.
func (r room) readmit(ctx context.Context, id tenant.ID, m mark, hashes []catalog.EntityHash) error {
	switch m.rec.State {
	case Readmitted: // of a call that was cut off, stores may not know yet
	case Erased:
		_ = r.Profiles(ctx) // those of the profile are gone; where that fails, this store learns it as soon as all others do
		m.rec.State = Readmitted
		next, err := catalog.MarkChanges.Next(ctx, r.Table)
		if err != nil {
			return r.Explain(err)
		}
		lift := func(mut *bigtable.Mutation) { catalog.LiftMark(mut, next, hashes) }
		if err := r.save(ctx, &m, lift); err != nil {
			if errors.Is(err, ErrTakenOver) {
				return fmt.Errorf("%w: erasure of tenant %s", ErrConflict, id)
			}
			return err
		}
	default:
		return fmt.Errorf("%w: tenant %s", ErrErasing, id)
	}
	return r.announce(ctx, m)
}

// ReadmitEntity lifts the marks of an entity whose erasures have ended: in the dataset of that name, or for the empty name in all
// datasets that have these key fields; stores take its points again within tsdb.ErasedWithin. What was erased from all
// datasets at once is readmitted to all at once. Its error matches ErrErasing where an erasure has not
// ended, and tsdb.ErrNotFound where there is none. It may be repeated.
func ReadmitEntity(ctx context.Context, store *tsdb.Store, id tenant.ID, dataset string, fields map[string]string) (err error) {
	ctx, op := inside.Watch(store).Begin(ctx, telemetry.TenantReadmit, telemetry.Subject{Tenant: id.String()})
	defer func() { op.End(err) }()
	r, err := enterFor(ctx, store, id)
	if err != nil {
		return err
	}
	fit, err := r.fitting(ctx, id, dataset, fields)
	if err != nil {
		return err
	}
	hashes := hashesOf(fit)
	marks := map[string][]catalog.EntityHash{entityName(hashes): hashes} // one that a call that was cut off has lifted, too
	all, err := r.Marks(ctx)
	if err != nil {
		return err
	}
	for m := range all {
		here := func(h catalog.EntityHash) bool { return slices.Contains(hashes, h) }
		elsewhere := func(h catalog.EntityHash) bool { return !here(h) }
		switch {
		case m.Gone || m.Tenant != id.String() || !slices.ContainsFunc(m.Entities, here):
		case dataset != "" && slices.ContainsFunc(m.Entities, elsewhere):
			return invalid.New(ErrInvalid, "dataset", dataset, "empty, as the entity was erased from several datasets at once")
		default:
			marks[m.Name] = m.Entities
		}
	}
	found := false
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		m, err := r.mark(ctx, id, name)
		if err != nil {
			return err
		}
		if !m.doc.Exists() {
			continue
		}
		found = true
		if err := r.readmit(ctx, id, m, marks[name]); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%w: erasure of an entity of tenant %s", tsdb.ErrNotFound, id)
	}
	return nil
}

// entityName returns the name of the mark of an entity, of which its key fields cannot be told.
func entityName(hashes []catalog.EntityHash) string {
	sum := sha256.New()
	for _, h := range hashes {
		sum.Write(h[:])
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
