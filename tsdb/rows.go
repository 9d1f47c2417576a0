package tsdb

import (
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/tenant"
)

// rows returns the rows of a tenant: the table through the tenant's view, where the store works through views. Whatever is
// read or written of a tenant goes through it.
func (s *tenancy) rows(id tenant.ID) *bt.Table {
	switch {
	case s.views != nil && !id.IsZero():
		return s.views.of(id)
	}
	return s.whole
}

// rowsOf is rows for the items of one request.
func (d delivery) rowsOf(items []*buffer.Item) (*bt.Table, error) {
	id, err := tenant.Parse(items[0].Tenant)
	if err != nil {
		return nil, err
	}
	return d.store.rows(id), nil
}
