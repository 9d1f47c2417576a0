package tsdb

import (
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/tenant"
)

// rowsOf is rows for the items of one request.
func (d delivery) rowsOf(items []*buffer.Item) (*bt.Table, error) {
	id, err := tenant.Parse(items[0].Tenant)
	if err != nil {
		return nil, err
	}
	return d.store.core.Rows(id), nil
}
