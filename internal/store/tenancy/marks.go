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

// tenantMarks are the erasure marks of one tenant. They do not change once they are known.
type tenantMarks struct {
	rows     map[string]entityMark        // by the name of the mark; the tenant's own has the empty name
	entities map[catalog.EntityHash]int64 // when the mark of an entity ends, as entityMark has it
	all      *int64                       // when the mark of the whole tenant ends; nil for none

	// The generations of the first writes that count since marks were lifted: of the whole tenant, and of entities.
	lifted         uint64
	liftedEntities map[catalog.EntityHash]uint64
}

// entityMark is a mark in as few bytes as there may be many of them.
type entityMark struct {
	until    int64                // the second since 1970 at which it ends, 0 for no end
	entities []catalog.EntityHash // nil for the whole tenant
	lifted   uint64               // as catalog.Mark has it
	gone     bool
}

func over(until int64, now time.Time) bool { return until != 0 && now.Unix() >= until }

// later returns the later one of two ends.
func later(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

func (t *tenantMarks) coversAll(now time.Time) bool { return t.all != nil && !over(*t.all, now) }

func (t *tenantMarks) coversEntity(dataset, path string, now time.Time) bool {
	if len(t.entities) == 0 {
		return false
	}
	until, ok := t.entities[catalog.HashEntity(dataset, path)]
	return ok && !over(until, now)
}

// set notes a mark that was read.
func (t *tenantMarks) set(m catalog.Mark) {
	em := entityMark{entities: m.Entities, lifted: m.Lifted, gone: m.Gone}
	if !m.Until.IsZero() {
		em.until = m.Until.Unix()
	}
	t.rows[m.Name] = em
}

// index makes what is looked up of the marks that were read.
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
		if m.gone {
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
				mark := catalog.Mark{Tenant: tenant, Name: name, Entities: em.entities, Lifted: em.lifted, Gone: em.gone}
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

// ReadAgain reads the marks as they are now, and returns them.
func (e *Erasures) ReadAgain(ctx context.Context) (iter.Seq[catalog.Mark], error) {
	if err := e.Refresh(ctx); err != nil {
		return nil, err
	}
	return e.Last().each(), nil
}

// allAgain is how long a store applies changes of rows that it holds. Then it reads all of them, in case it has missed one: a
// replicated table may show the log before the row, and a program that does not know the log may have changed a profile.
const allAgain = time.Hour

// readMarks reads what has changed since marks were known: the log of changes, and the marks that it lists. Where it does not
// tell, and once in a long while, it reads all marks.
func (e *Erasures) readMarks(ctx context.Context, known *Marks) (*Marks, error) {
	epoch := ""
	if known != nil && time.Since(known.readAll) < allAgain {
		epoch = known.Epoch
	}
	c, err := catalog.MarkChanges.Read(ctx, e.table, epoch) // before the marks, so that it is never newer than they are
	if status.Code(err) == codes.NotFound {
		c, err = catalog.Changes{}, nil // a table that is not there has no marks, and the call itself will say so
	}
	if err != nil {
		return nil, e.unread(err)
	}
	switch {
	case c.Epoch == "" && known != nil && known.Epoch == "":
		return known, nil // still no mark was ever made
	case c.Epoch == "":
		return &Marks{}, nil
	case c.All:
		return e.readAllMarks(ctx, c)
	case len(c.Names) == 0:
		return known, nil
	}
	changed := map[string]*tenantMarks{}
	next := &Marks{Changes: c, readAll: known.readAll, changed: changed, Tenants: maps.Clone(known.Tenants)}
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
	for _, name := range c.Names {
		m := catalog.MarkRow(name)
		delete(of(m.Tenant).rows, m.Name)
	}
	for m, err := range catalog.MarksOf(ctx, e.table, c.Names) {
		if err != nil {
			return nil, e.unread(err)
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

func (e *Erasures) readAllMarks(ctx context.Context, c catalog.Changes) (*Marks, error) {
	m := &Marks{Changes: c, readAll: time.Now(), Tenants: map[string]*tenantMarks{}}
	for mark, err := range catalog.Marks(ctx, e.table) {
		if err != nil {
			return nil, e.unread(err)
		}
		t := m.Tenants[mark.Tenant]
		if t == nil {
			t = &tenantMarks{rows: map[string]entityMark{}}
			m.Tenants[mark.Tenant] = t
		}
		t.set(mark)
	}
	for _, t := range m.Tenants {
		t.index()
	}
	return m, nil
}

func (e *Erasures) unread(err error) error {
	return fmt.Errorf("tsdb: read the erasure marks: %w", e.explain(err))
}

// Refusal is why nothing is written of what the marks cover.
func (m *Marks) Refusal(w Write, now time.Time) error {
	if dataset := w.Dataset(); m.coversDataset(dataset, now) {
		return fmt.Errorf("%w: %s", ErrDatasetDeleted, dataset)
	}
	return fmt.Errorf("%w: tenant %s", ErrErased, w.Tenant())
}
