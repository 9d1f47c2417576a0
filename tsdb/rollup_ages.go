package tsdb

import (
	"context"
	"time"
)

// rollupAge returns how long the tenant's rollups are kept at most by the class that its points are written in now; 0 for as
// long as their own classes say.
func (r *rows) rollupAge(ctx context.Context) (time.Duration, error) {
	if r.d.ShortestRollupAge() == 0 {
		return 0, nil
	}
	d, err := r.writing(ctx)
	if err != nil {
		return 0, err
	}
	return d.Classes[0].RollupAge, nil
}
