package tsdb

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// Each public call that touches points asks the store's limiter here, once: in ready or count for what it writes, and in read,
// readSpan or readWide for what it reads.

// limits are those that the repository is held to; nil for none.
func (r *Repository[T]) limits() *limit.Limiter {
	if r.unlimited {
		return nil
	}
	return r.store.core.Limits
}

// ready returns a point that was checked against everything, its tenant's limits last, so that only what would be sent counts.
func (r *Repository[T]) ready(d *dataset.Dataset, p Point[T], now time.Time) (write, error) {
	w, err := r.prepare(d, p, now)
	if err != nil {
		return write{}, err
	}
	if err := r.count(p.Entity, &w); err != nil {
		return write{}, err
	}
	return w, nil
}

// count counts a point that is about to be sent against its tenant's limits, or refuses it.
func (r *Repository[T]) count(e Entity, w *write) error {
	return r.limits().Write(r.tenant, r.schema.d.Name, e.path, len(w.payload))
}

// read lets a read begin; done ends it.
func (r *Repository[T]) read() (done func(), err error) { return r.limits().Read(r.tenant) }

// readSpan is read for one of an interval.
func (r *Repository[T]) readSpan(in Interval) (done func(), err error) {
	if r.limits() != nil {
		if err := r.limits().Span(r.tenant, r.length(in)); err != nil {
			return nil, err
		}
	}
	return r.read()
}

// readWide is read for one of many requests, which it makes as narrow as the tenant's are.
func (r *Repository[T]) readWide(o *readOptions) (done func(), err error) {
	o.width = r.limits().Concurrency(r.tenant, o.width)
	return r.read()
}

// length returns how much of an interval can hold visible points: none before the dataset's retention, and where an end is
// left open, up to now.
func (r *Repository[T]) length(in Interval) time.Duration {
	now := r.store.core.Clock()
	start, end := r.schema.d.Precision.Time(r.schema.d.Visibility(now).Oldest()), now
	if from, ok := in.Start(); ok && from.After(start) {
		start = from
	}
	if to, ok := in.End(); ok {
		end = to
	}
	return max(0, end.Sub(start))
}
