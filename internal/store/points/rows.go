package points

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// Rows are one tenant's rows of one dataset.
type Rows struct {
	*Table
	D      *dataset.Dataset
	View   *bt.Table // as the tenant may see it
	Tenant tenant.ID
	Space  rowkey.Space // of the points
	Heads  rowkey.Space // of the heads
	// Unlimited says that calls are the store's own: no limits count, and points expire by a clock that is not ahead.
	Unlimited bool
}

// DatasetForWrite returns the dataset that writes the tenant's points now: in the class that its profile names.
func (r *Rows) DatasetForWrite(ctx context.Context) (*dataset.Dataset, error) {
	d := r.D
	if d.Choices == nil {
		return d, nil
	}
	if a := r.Classes.Fresh(); a != nil {
		return a.DatasetFor(r.Tenant.String(), d), nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.View.Timeouts().Write)
	defer cancel()
	a, err := r.Classes.Get(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("tsdb: read the retention classes of tenants: %w", err)
	case err != nil:
		return nil, err
	}
	return a.DatasetFor(r.Tenant.String(), d), nil
}

// AdmitEntity refuses a write to an erased entity with ErrErased. Background writers call it before each request that
// writes.
func (r *Rows) AdmitEntity(path string) error { return r.Erased.AdmitEntity(r.Tenant, r.D.Name, path) }

// headKey returns the row key of an entity's head.
func (r *Rows) headKey(path string) string {
	var buf [256]byte
	return string(r.Heads.AppendEntity(buf[:0], path))
}

// cellOf returns the timestamp of the cell of a point in a head.
func (r *Rows) cellOf(units int64) bigtable.Timestamp {
	return bigtable.Timestamp(r.D.Precision.CellMicros(units))
}

// Visibility returns what is visible now.
func (r *Rows) Visibility() dataset.Visibility {
	if r.Unlimited {
		return r.D.Visibility(r.Time.Earliest()) // a rollup must not lack points that a fast clock hides
	}
	return r.D.Visibility(r.Clock())
}

// Key returns the row key of a point.
func (r *Rows) Key(path string, units int64, id string) string {
	var buf [256]byte
	return string(r.Space.AppendEvent(buf[:0], path, units, id))
}

// RollupAge returns how long the tenant's rollups are kept at most by the class that its points are written in now; 0
// for as long as their own classes say.
func (r *Rows) RollupAge(ctx context.Context) (time.Duration, error) {
	if r.D.ShortestRollupAge() == 0 {
		return 0, nil
	}
	d, err := r.DatasetForWrite(ctx)
	if err != nil {
		return 0, err
	}
	return d.Classes[0].RollupAge, nil
}
