package tsdb

import (
	"errors"

	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// journalErasures tell a journal what is erased.
type journalErasures struct{ erased *tenancy.Erasures }

// Watch implements journal.Erasures. It has the marks read if none are known, and does not wait for them.
func (e journalErasures) Watch() (changed <-chan struct{}, stop func()) {
	c := e.erased.Watch()
	e.erased.Start()
	return c, func() { e.erased.Unwatch(c) }
}

// Filter implements journal.Erasures.
func (e journalErasures) Filter() func(*journal.Entry) bool {
	m, now := e.erased.Last(), e.erased.Clock()
	if m == nil || len(m.Tenants) == 0 {
		return nil
	}
	return func(entry *journal.Entry) bool {
		p := of(&entry.Item)
		return m.CoversWrite(p, p.generation, now)
	}
}

// Refused implements journal.Erasures.
func (journalErasures) Refused(err error) bool { return errors.Is(err, tenancy.ErrErased) }
