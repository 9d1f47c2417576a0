package points

import (
	"context"
	"fmt"

	"github.com/tidemark-go/tidemark/tenant/limit"
)

// KnowLimits refuses a call that is held to limits which are not known.
func (r *Rows) KnowLimits(ctx context.Context) error {
	if r.ProfileLimits == nil || r.Unlimited {
		return nil
	}
	p := r.ProfileLimits.Fresh()
	if p == nil {
		ctx, cancel := r.Whole.Bound(ctx, false)
		defer cancel()
		var err error
		if p, err = r.ProfileLimits.Get(ctx); err != nil {
			return fmt.Errorf("tsdb: read the limits of tenants: %w", err)
		}
	}
	if err := p.Refused[r.Tenant.String()]; err != nil {
		return fmt.Errorf("tsdb: the limits in the profile of tenant %s: %w", r.Tenant, err)
	}
	return nil
}

// Each public call that touches points asks the store's limiter once: in ready or count for what it writes, and in read,
// readSpan or readWide for what it reads.

// Limiter returns the limits that the calls are held to; nil for none.
func (r *Rows) Limiter() *limit.Limiter {
	if r.Unlimited {
		return nil
	}
	return r.Limits
}

// CountWrite counts a point that is about to be sent against its tenant's limits, or refuses it.
func (r *Rows) CountWrite(path string, w *Write) error {
	return r.Limiter().Write(r.Tenant, r.D.Name, path, len(w.Payload))
}

// BeginRead lets a read begin; done ends it.
func (r *Rows) BeginRead() (done func(), err error) { return r.Limiter().Read(r.Tenant) }

// BeginWideRead is read for one of many requests, which it makes as narrow as the tenant's are.
func (r *Rows) BeginWideRead(o *Options) (done func(), err error) {
	o.Width = r.Limiter().Concurrency(r.Tenant, o.Width)
	return r.BeginRead()
}

// Take refuses what must not be written of an entity, and counts it against the tenant's limits.
func (r *Rows) Take(path string, bytes int) error {
	if err := r.D.CheckKeys(path); err != nil {
		return err
	}
	if err := r.Erased.AdmitEntity(r.Tenant, r.D.Name, path); err != nil {
		return err
	}
	return r.Limiter().Write(r.Tenant, r.D.Name, path, bytes)
}
