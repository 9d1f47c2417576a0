package rollup

import (
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/tenant"
)

// tenants returns those to work on.
func (w *Worker) tenants(ctx context.Context) iter.Seq2[tenant.ID, error] {
	return w.opts.Tenants(ctx)
}
