package delivery

import (
	"errors"

	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// Erasures reports to a journal which writes are erased.
type Erasures struct{ Marks *tenancy.Erasures }

// Watch implements journal.Erasures. If no marks are known, it starts to read them and does not wait.
func (e Erasures) Watch() (changed <-chan struct{}, stop func()) {
	c := e.Marks.Watch()
	e.Marks.Start()
	return c, func() { e.Marks.Unwatch(c) }
}

// Filter implements journal.Erasures.
func (e Erasures) Filter() func(*journal.Entry) bool {
	m, now := e.Marks.Last(), e.Marks.Clock()
	if m == nil || len(m.Tenants) == 0 {
		return nil
	}
	return func(entry *journal.Entry) bool {
		p := Of(&entry.Item)
		return m.CoversWrite(p, p.Taken, now)
	}
}

// Refused implements journal.Erasures.
func (Erasures) Refused(err error) bool { return errors.Is(err, tenancy.ErrErased) }
