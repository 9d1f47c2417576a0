package tenants

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Exists reports whether List would list a tenant: whether it has rows, a profile, or an erasure mark. Unlike List, it
// does not tell rows of other programs apart. A tenant can write without a profile, so a tenant that does not exist may
// be misspelt or may not have written yet. Exists reads up to three rows. It returns the errors of Load, except
// tsdb.ErrNotFound.
func Exists(ctx context.Context, store *tsdb.Store, id tenant.ID) (exists bool, err error) {
	ctx, r, end, err := enterFor(ctx, store, telemetry.TenantProfile, id)
	defer func() { end(err) }()
	if err != nil {
		return false, err
	}
	if doc, _, err := r.profile(ctx, id); err != nil || doc.Exists() {
		return err == nil, err
	}
	if m, err := r.mark(ctx, id.String(), ""); err != nil || m.rec.inForce(m.doc, r.Time.Earliest()) {
		return err == nil, err
	}
	rng, err := rowkey.TenantRange(id)
	if err != nil {
		return false, err
	}
	key, err := r.first(ctx, rng)
	return key != "", err
}
