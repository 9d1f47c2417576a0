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

	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// record is the document of a mark: the report so far, and the state that a later call needs to continue.
type record struct {
	Report
	steps
	Keep time.Duration `json:"keep"` // of the first call
}

// mark is the stored mark of a tenant or of an entity.
type mark struct {
	stored
	rec record
}

// mark reads the mark of a tenant, or of an entity by the mark's name.
func (r room) mark(ctx context.Context, id, name string) (m mark, err error) {
	m.stored, err = r.load(ctx, markKey(id, name), &m.rec)
	return m, err
}

// markKey returns the key of the mark of a tenant, or of an entity by the mark's name.
func markKey(id, name string) string {
	if name != "" {
		name = "#" + name
	}
	return rowkey.MarkRows + id + name
}

// inForce reports whether stores refuse calls because of the mark in a document.
func (rec *record) inForce(doc catalog.Document, now time.Time) bool {
	return doc.Exists() && rec.State != readmitted && (rec.Until.IsZero() || now.Before(rec.Until))
}

// MarshalJSON writes all members, including empty ones, so that they overwrite every member of an earlier record. The
// key fields of an entity are not stored.
func (rec record) MarshalJSON() ([]byte, error) {
	type plain record
	rec.Fields = nil
	text, err := json.Marshal(plain(rec))
	if err != nil {
		return nil, err
	}
	const empty = `{"by":"","reason":"","verified":"0001-01-01T00:00:00Z","ended":"0001-01-01T00:00:00Z",` +
		`"until":"0001-01-01T00:00:00Z","profile":false,"late":0,"dead_letters":0,"journals":0,"dataset":""}`
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal([]byte(empty), &all), json.Unmarshal(text, &all)); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// announce makes all stores read a mark again, and this store immediately.
func (r room) announce(ctx context.Context, key string) error {
	if err := catalog.MarkChanges.Append(ctx, r.Whole, strings.TrimPrefix(key, rowkey.MarkRows)); err != nil {
		return r.Explain(err)
	}
	_, err := r.Erased.ReadAgain(ctx)
	return err
}

// roomForMark returns an error if the table has no room for another mark. It deletes marks that have ended.
func (e *erasure) roomForMark(ctx context.Context) error {
	all, err := e.Erased.ReadAgain(ctx)
	if err != nil {
		return err
	}
	n, mine, now := 0, 0, e.Time.Earliest()
	var over, gone []catalog.Mark
	for m := range all {
		switch {
		case m.Gone:
			gone = append(gone, m)
		case !m.Over(now):
			if n++; m.Tenant == e.id.String() {
				mine++
			}
		case len(over) < 100: // the next call deletes the rest
			over = append(over, m)
		}
	}
	switch {
	case n >= mostMarks:
		return invalid.New(tsdb.ErrInvalid, "marks", fmt.Sprint(n), fmt.Sprintf("fewer than %d, because every store holds all marks in memory; remove some with ReadmitEntity", mostMarks))
	case mine >= mostOfTenant:
		return invalid.New(tsdb.ErrInvalid, "marks of tenant "+e.id.String(), fmt.Sprint(mine), fmt.Sprintf("fewer than %d; remove some with ReadmitEntity", mostOfTenant))
	}
	if err := e.forgetLifts(ctx, gone, n); err != nil {
		return err
	}
	if len(over) > 0 {
		if now, err = e.Service.Confirmed(ctx); errors.Is(err, clock.ErrAhead) {
			return nil // the error is reported, and ended marks do no harm
		} else if err != nil {
			return err
		}
	}
	var lifted []string
	for _, o := range over {
		if _, err := tenant.Parse(o.Tenant); err != nil || markKey(o.Tenant, o.Name) == e.key {
			continue
		}
		m, err := e.room.mark(ctx, o.Tenant, o.Name)
		if err != nil || !m.doc.Exists() || m.rec.inForce(m.doc, now) {
			continue // it blocks no call, or is a new mark
		}
		lift := func(mut *bigtable.Mutation) { catalog.LiftMark(mut, 0, nil) }
		if err := e.replace(ctx, &m.stored, m.rec, lift); err != nil && !errors.Is(err, ErrTakenOver) {
			return err
		}
		lifted = append(lifted, o.Row())
	}
	return e.Explain(catalog.MarkChanges.Append(ctx, e.Whole, lifted...))
}

// forgetLifts deletes the oldest records of lifted marks, if stores hold as many of them and of marks as they can.
func (e *erasure) forgetLifts(ctx context.Context, gone []catalog.Mark, marks int) error {
	const most = 100
	if len(gone) == 0 || len(gone)+marks < mostMarks {
		return nil
	}
	slices.SortFunc(gone, func(a, b catalog.Mark) int { return cmp.Compare(a.Lifted, b.Lifted) })
	var names []string
	for _, g := range gone[:min(len(gone), most)] {
		name := g.Row()
		m, doc, err := catalog.LoadMark(ctx, e.Whole, name)
		if err != nil {
			return e.Explain(err)
		}
		if !doc.Exists() || !m.Gone || m.Lifted != g.Lifted {
			continue // the mark was made or lifted again
		}
		_, ok, err := catalog.SaveDocument(ctx, e.Whole, rowkey.MarkRows+name, struct{}{}, doc, catalog.ForgetLift)
		if err != nil {
			return e.Explain(err)
		}
		if ok {
			names = append(names, name)
		}
	}
	return e.Explain(catalog.MarkChanges.Append(ctx, e.Whole, names...))
}

// The limits of marks in force. Tests lower them.
var mostMarks, mostOfTenant = catalog.MostMarks, catalog.MostOfTenant

// Erasure returns the current report of a tenant's erasure. The error matches tsdb.ErrNotFound if there never was
// one. It costs one read.
func Erasure(ctx context.Context, store *tsdb.Store, id tenant.ID) (_ Report, err error) {
	ctx, r, end, err := enterFor(ctx, store, telemetry.TenantProfile, id)
	defer func() { end(err) }()
	if err != nil {
		return Report{}, err
	}
	m, err := r.mark(ctx, id.String(), "")
	if err == nil && !m.doc.Exists() {
		err = fmt.Errorf("%w: erasure of tenant %s", tsdb.ErrNotFound, id)
	}
	return m.rec.Report, err
}

// Readmit lifts the mark of a tenant whose erasure has ended; ReadmitEntity lifts that of an entity. Stores accept
// its points again within 10 seconds.
//
// Data written before the erasure does not come back: journals drop it whenever they are opened. They also drop
// points that a program accepted after the erasure began while it could not read the table. One case is not covered:
// points that a program accepted before it had ever read the table's marks count as new.
//
// It fails while the erasure has not ended, and with tsdb.ErrNotFound if there is none. Readmit may be repeated.
func Readmit(ctx context.Context, store *tsdb.Store, id tenant.ID) (err error) {
	ctx, r, end, err := enterFor(ctx, store, telemetry.TenantReadmit, id)
	defer func() { end(err) }()
	if err != nil {
		return err
	}
	m, err := r.mark(ctx, id.String(), "")
	if err != nil {
		return err
	}
	return r.readmit(ctx, id, m, nil)
}

// readmit lifts a mark; hashes are those of an entity's mark.
func (r room) readmit(ctx context.Context, id tenant.ID, m mark, hashes []catalog.EntityHash) error {
	if !m.doc.Exists() {
		return fmt.Errorf("%w: erasure of tenant %s", tsdb.ErrNotFound, id)
	}
	if m.rec.State == Erased {
		_ = r.RenewProfiles(ctx) // the profile is deleted; after an error, this store notices it as late as all others
	}
	err := r.lift(ctx, &m.stored, &m.rec, &m.rec.State, "tenant "+id.String(), hashes)
	if errors.Is(err, ErrTakenOver) {
		return fmt.Errorf("%w: erasure of tenant %s", ErrConflict, id)
	}
	return err
}

// lift lifts the mark of a tenant, an entity or a dataset, if its sweep has ended, and makes all stores read it again.
// Of a mark that is lifted already, an interrupted call may not have reached the stores.
func (r room) lift(ctx context.Context, m *stored, rec any, state *State, name string, hashes []catalog.EntityHash) error {
	switch {
	case *state == readmitted:
	case *state == Erased:
		next, err := catalog.MarkChanges.Next(ctx, r.Whole)
		if err != nil {
			return r.Explain(err)
		}
		*state = readmitted
		if err := r.replace(ctx, m, rec, func(mut *bigtable.Mutation) { catalog.LiftMark(mut, next, hashes) }); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w: %s", errtype.ErrErasing, name)
	}
	return r.announce(ctx, m.key)
}

// ReadmitEntity lifts the marks of an entity whose erasures have ended. An empty dataset selects all datasets that
// have these key fields. Stores accept the entity's points again within 10 seconds. An entity that was erased
// from all datasets with one call is also readmitted to all with one call. It fails while an erasure has not ended, and
// with tsdb.ErrNotFound if there is none. ReadmitEntity may be repeated.
func ReadmitEntity(ctx context.Context, store *tsdb.Store, id tenant.ID, dataset string, fields map[string]string) (err error) {
	ctx, r, end, err := enterFor(ctx, store, telemetry.TenantReadmit, id)
	defer func() { end(err) }()
	if err != nil {
		return err
	}
	fit, err := r.fitting(ctx, id, dataset, fields)
	if err != nil {
		return err
	}
	hashes := hashesOf(fit)
	marks := map[string][]catalog.EntityHash{entityName(hashes): hashes} // includes a mark that an interrupted call has lifted
	all, err := r.Erased.ReadAgain(ctx)
	if err != nil {
		return err
	}
	for m := range all {
		here := func(h catalog.EntityHash) bool { return slices.Contains(hashes, h) }
		elsewhere := func(h catalog.EntityHash) bool { return !here(h) }
		switch {
		case m.Gone || m.Tenant != id.String() || !slices.ContainsFunc(m.Entities, here):
		case dataset != "" && slices.ContainsFunc(m.Entities, elsewhere):
			return invalid.New(tsdb.ErrInvalid, "dataset", dataset, "empty, as the entity was erased from several datasets at once")
		default:
			marks[m.Name] = m.Entities
		}
	}
	found := false
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		m, err := r.mark(ctx, id.String(), name)
		if err == nil && m.doc.Exists() {
			found = true
			err = r.readmit(ctx, id, m, marks[name])
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%w: erasure of an entity of tenant %s", tsdb.ErrNotFound, id)
	}
	return nil
}

// entityName returns the name of an entity's mark. It does not reveal the entity's key fields.
func entityName(hashes []catalog.EntityHash) string {
	sum := sha256.New()
	for _, h := range hashes {
		sum.Write(h[:])
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
