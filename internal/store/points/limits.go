package points

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// KnowLimits refuses a call if the store takes limits from profiles and does not know those of the tenant.
func (r *Rows) KnowLimits(ctx context.Context) error {
	if r.Unlimited {
		return nil
	}
	return r.Tenancy.KnowLimits(ctx, r.Tenant)
}

// Limiter returns the limits that hold for the calls; nil for none. Each public call that touches points asks it once:
// by CountWrite or Take if it writes, and by BeginRead or BeginWideRead if it reads.
func (r *Rows) Limiter() *limit.Limiter {
	if r.Unlimited {
		return nil
	}
	return r.Limits
}

// CountWrite counts a point that is about to be sent against its tenant's limits, or refuses it.
func (r *Rows) CountWrite(path string, w *Write) error {
	return gate.Of(r.Limiter()).Write(r.Tenant, r.D.Name, path, len(w.Payload))
}

// BeginRead lets a read begin; done ends it.
func (r *Rows) BeginRead() (done func(), err error) { return gate.Of(r.Limiter()).Read(r.Tenant) }

// AdmitSpan refuses a read of the points from start to end if that is longer than the tenant's limit. If ended is
// false, there is no end. What counts can hold visible points: it begins where the retention ends at the earliest, and
// without an end it ends now.
func (r *Rows) AdmitSpan(start, end time.Time, ended bool) error {
	if r.Limiter() == nil {
		return nil
	}
	now := r.Clock()
	if oldest := r.D.Precision.Time(r.D.Visibility(now).Oldest()); oldest.After(start) {
		start = oldest
	}
	if !ended {
		end = now
	}
	return gate.Of(r.Limiter()).Span(r.Tenant, max(0, end.Sub(start)))
}

// BeginWideRead is BeginRead for a call of many requests. It lowers their concurrency to the tenant's limit.
func (r *Rows) BeginWideRead(o *Options) (done func(), err error) {
	o.Width = gate.Of(r.Limiter()).Concurrency(r.Tenant, o.Width)
	return r.BeginRead()
}

// Take checks an event of an entity that is about to be added to a rollup, and counts it against the tenant's limits.
func (r *Rows) Take(path string, bytes int) error {
	if err := r.D.CheckKeys(path); err != nil {
		return err
	}
	if err := r.AdmitEntity(path); err != nil {
		return err
	}
	return gate.Of(r.Limiter()).Write(r.Tenant, r.D.Name, path, bytes)
}
