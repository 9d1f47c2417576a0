package tenancy

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// tenantMarks are the erasure marks of one tenant. They are immutable once published.
type tenantMarks struct {
	rows     map[string]entityMark        // by the name of the mark; the mark of the whole tenant has the empty name
	entities map[catalog.EntityHash]int64 // end of an entity's mark, in the form of entityMark.until
	all      *int64                       // end of the whole tenant's mark; nil if there is none

	// The generations of the first writes that are allowed since marks were lifted: for the whole tenant, and for
	// entities.
	lifted         uint64
	liftedEntities map[catalog.EntityHash]uint64
}

// entityMark is a mark in a compact form, because there may be many.
type entityMark struct {
	until    int64                // its end in seconds since 1970; 0 means no end
	entities []catalog.EntityHash // nil for the whole tenant
	lifted   uint64               // see catalog.Mark
	removed  bool
}

func over(until int64, now time.Time) bool { return until != 0 && now.Unix() >= until }

// later returns the later one of two ends.
func later(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// coversAll reports whether the whole tenant is erased. Nil has no marks.
func (t *tenantMarks) coversAll(now time.Time) bool {
	return t != nil && t.all != nil && !over(*t.all, now)
}

func (t *tenantMarks) coversEntity(dataset, path string, now time.Time) bool {
	if t == nil || len(t.entities) == 0 {
		return false
	}
	until, ok := t.entities[catalog.HashEntity(dataset, path)]
	return ok && !over(until, now)
}

// set records a mark that was read.
func (t *tenantMarks) set(m catalog.Mark) {
	em := entityMark{entities: m.Entities, lifted: m.Lifted, removed: m.Gone}
	if !m.Until.IsZero() {
		em.until = m.Until.Unix()
	}
	t.rows[m.Name] = em
}

// index builds the lookup fields from rows.
func (t *tenantMarks) index() {
	t.all, t.entities = nil, make(map[catalog.EntityHash]int64, len(t.rows))
	t.lifted, t.liftedEntities = 0, map[catalog.EntityHash]uint64{}
	for _, m := range t.rows {
		if m.entities == nil {
			t.lifted = max(t.lifted, m.lifted)
		} else if m.lifted > 0 {
			for _, h := range m.entities {
				t.liftedEntities[h] = max(t.liftedEntities[h], m.lifted)
			}
		}
		if m.removed {
			continue
		}
		if m.entities == nil {
			until := m.until
			if t.all != nil {
				until = later(*t.all, until)
			}
			t.all = &until
		}
		for _, h := range m.entities {
			until, ok := t.entities[h]
			if !ok {
				until = m.until
			}
			t.entities[h] = later(until, m.until)
		}
	}
}

// each visits all marks.
func (m *Marks) each() iter.Seq[catalog.Mark] {
	return func(yield func(catalog.Mark) bool) {
		for tenant, t := range m.Tenants {
			for name, em := range t.rows {
				mark := catalog.Mark{Tenant: tenant, Name: name, Entities: em.entities, Lifted: em.lifted, Gone: em.removed}
				if em.until != 0 {
					mark.Until = time.Unix(em.until, 0)
				}
				if !yield(mark) {
					return
				}
			}
		}
	}
}

// ReadAgain reads the current marks and returns them.
func (e *Erasures) ReadAgain(ctx context.Context) (iter.Seq[catalog.Mark], error) {
	if err := e.Refresh(ctx); err != nil {
		return nil, err
	}
	return e.Last().each(), nil
}

// allAgain is how long a store only applies changes to the rows that it holds. Then it reads all rows, in case it has
// missed a change: a replicated table may show the log before the row, and a program that does not know the log may
// have changed a profile.
const allAgain = time.Hour

// readMarks reads the changes since known: the change log, and the marks that it lists. If the log does not reach back
// far enough, and once each allAgain, it reads all marks.
func (e *Erasures) readMarks(ctx context.Context, known *Marks) (*Marks, error) {
	epoch := ""
	if known != nil && time.Since(known.readAll) < allAgain {
		epoch = known.Epoch
	}
	c, err := catalog.MarkChanges.Read(ctx, e.table, epoch) // before the marks, so that the log is never newer than they are
	if status.Code(err) == codes.NotFound {
		c, err = catalog.Changes{}, nil // a missing table has no marks; the call itself reports that it is missing
	}
	if err != nil {
		return nil, e.readError(err)
	}
	switch {
	case c.Epoch == "" && known != nil && known.Epoch == "":
		return known, nil // no mark was ever made
	case c.Epoch == "":
		return &Marks{}, nil
	case !c.All && len(c.Names) == 0:
		return known, nil
	}
	names, changed := c.Names, map[string]*tenantMarks{}
	if c.All {
		names, known = nil, &Marks{readAll: time.Now(), Tenants: map[string]*tenantMarks{}}
	}
	next := &Marks{Changes: c, readAll: known.readAll, Tenants: maps.Clone(known.Tenants)}
	if !c.All {
		next.changed = changed
	}
	of := func(tenant string) *tenantMarks {
		t := changed[tenant]
		if t == nil {
			t = &tenantMarks{rows: map[string]entityMark{}}
			if old := known.Tenants[tenant]; old != nil {
				t.rows = maps.Clone(old.rows)
			}
			changed[tenant] = t
		}
		return t
	}
	for _, name := range names {
		m := catalog.MarkRow(name)
		delete(of(m.Tenant).rows, m.Name)
	}
	for m, err := range catalog.Marks(ctx, e.table, names) {
		if err != nil {
			return nil, e.readError(err)
		}
		of(m.Tenant).set(m)
	}
	for tenant, t := range changed {
		if delete(next.Tenants, tenant); len(t.rows) > 0 {
			t.index()
			next.Tenants[tenant] = t
		}
	}
	return next, nil
}

func (e *Erasures) readError(err error) error {
	return fmt.Errorf("tsdb: read the erasure marks: %w", e.explain(err))
}

// Refusal returns the error for a write that the marks cover.
func (m *Marks) Refusal(w Write, now time.Time) error {
	if dataset := w.Dataset(); m.coversDataset(dataset, now) {
		return fmt.Errorf("%w: %s", ErrDatasetDeleted, dataset)
	}
	return fmt.Errorf("%w: tenant %s", ErrErased, w.Tenant())
}
