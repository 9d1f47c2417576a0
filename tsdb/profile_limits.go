package tsdb

import (
	"context"
	"fmt"
)

// knowLimits refuses a call that is held to limits which are not known.
func (r *rows) knowLimits(ctx context.Context) error {
	if r.ProfileLimits == nil || r.unlimited {
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
	if err := p.Refused[r.tenant.String()]; err != nil {
		return fmt.Errorf("tsdb: the limits in the profile of tenant %s: %w", r.tenant, err)
	}
	return nil
}
