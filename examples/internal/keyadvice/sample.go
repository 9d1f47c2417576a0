package keyadvice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	defaultEntities = 1_000
	maxEntities     = 10_000
	pointsOfEntity  = 10 // the times of these points give the entity's rate
)

// TakeSample selects up to n random entities of a tenant's stored data in a dataset, for Advise: 1 to 10,000, and
// 1,000 for 0. It returns them with the dataset and, in OtherDatasets, the other datasets of the table, from the
// catalogue. An entity's rate is that of its newest ten points up to now, so a silent entity has a rate of nearly 0.
// Its payload is the largest of these points. Arrival is not set.
//
// It is an operator's call: it needs no tenant in ctx, and the tenant's limits do not count it. It reads the names of
// all the tenant's entities in the dataset, at most 100,000, like tsdb.PrefixReader.Entities. Then it reads ten points,
// with payloads, of each selected entity. Both steps use the app profile tsdb.Config.BulkAppProfile, and each is
// bounded by the scan timeout.
//
// Errors match tsdb.ErrInvalid for a dataset that the catalogue does not have, tsdb.ErrTenantMismatch if ctx carries
// another tenant, and tsdb.ErrErased if the tenant is erased.
func TakeSample(ctx context.Context, store *tsdb.Store, name string, id tenant.ID, n int) (_ tsdb.Dataset, sample Sample, err error) {
	ctx = ctxerr.Given(ctx)
	limit := cmp.Or(n, defaultEntities)
	if limit < 1 || limit > maxEntities {
		return nil, Sample{}, invalid.New(tsdb.ErrInvalid, "number of entities", strconv.Itoa(limit), fmt.Sprintf("0 for %d, or 1 to %d", defaultEntities, maxEntities))
	}
	in, err := inside.Of(store).Internals()
	if err != nil {
		return nil, Sample{}, err
	}
	if _, ok := tenant.FromContext(ctx); !ok && !id.IsZero() {
		ctx = tenant.NewContext(ctx, id)
	}
	if err := in.Admit(ctx, id); err != nil {
		return nil, Sample{}, err
	}
	sampled, err := datasets(ctx, in, name, &sample)
	if err != nil {
		return nil, Sample{}, err
	}
	r := inside.Of(sampled.For(store, id)).Unlimited((*bt.Table).BulkReads)
	picked, all, err := pick(ctx, r, limit)
	if err != nil {
		return nil, Sample{}, err
	}
	if len(picked) > 0 {
		sample.Share = float64(len(picked)) / float64(all)
	}
	if sample.Entities, err = measure(ctx, r, id, picked, in.Clock); err != nil {
		return nil, Sample{}, err
	}
	return sampled, sample, nil
}

// datasets returns a dataset of the catalogue, with the sizes of payloads as its values, and adds the others to a
// sample.
func datasets(ctx context.Context, in inside.Store, name string, sample *Sample) (sampled *tsdb.Schema[int], err error) {
	walked := catalog.Walk(ctx, in.Whole, func(e catalog.Entry, damage error) bool {
		d, bad := dataset.FromCatalog(e.Dataset)
		if bad = cmp.Or(damage, bad); bad != nil { // the others are optional
			if e.Name == name {
				err = bad
			}
			return true
		}
		schema := inside.Of[*tsdb.Repository[int]](nil).Schema(d, inside.ReadOnly(d.Tags, func(string) func([]byte) (int, error) {
			return func(payload []byte) (int, error) { return len(payload), nil }
		}), nil)
		if e.Name == name {
			sampled = schema
		} else {
			sample.OtherDatasets = append(sample.OtherDatasets, schema)
		}
		return true
	})
	switch {
	case walked != nil:
		err = fmt.Errorf("tsdb: read the catalogue: %w", in.Explain(walked))
	case sampled == nil && err == nil:
		err = invalid.New(tsdb.ErrInvalid, "dataset", invalid.Quote(name), "a dataset in the catalogue")
	}
	return sampled, err
}

// pick returns up to limit random entities of the repository, each with the same probability, and the number of all
// entities. For the same entities it returns the same selection.
func pick(ctx context.Context, r *tsdb.Repository[int], limit int) (picked []tsdb.Entity, all int, err error) {
	rng := rand.New(rand.NewPCG(1, 2))
	for e, err := range r.Under(tsdb.AllEntities()).Entities(ctx, tsdb.AllTime()) {
		if err != nil {
			return nil, 0, err
		}
		all++
		switch i := rng.IntN(all); {
		case len(picked) < limit:
			picked = append(picked, e)
		case i < limit:
			picked[i] = e
		}
		if all == maxSample {
			break
		}
	}
	return picked, all, nil
}

// measure returns the rates and payloads of entities, from their newest points.
func measure(ctx context.Context, r *tsdb.Repository[int], id tenant.ID, entities []tsdb.Entity, clock func() time.Time) ([]SampledEntity, error) {
	histories, err := r.LatestMany(ctx, entities, pointsOfEntity)
	if histories == nil && err != nil {
		return nil, err
	}
	now := clock()
	out := make([]SampledEntity, len(histories))
	for i, h := range histories {
		if _, undecoded := errors.AsType[tsdb.PointErrors](h.Err); h.Err != nil && !undecoded {
			return nil, h.Err
		}
		out[i] = SampledEntity{Tenant: id, Entity: h.Entity}
		for _, p := range h.Points {
			out[i].Payload = max(out[i].Payload, p.Value)
		}
		if n := len(h.Points); n > 1 {
			until := h.Points[0].Time
			if now.After(until) {
				until = now
			}
			out[i].Rate = float64(n-1) / max(time.Microsecond, until.Sub(h.Points[n-1].Time)).Seconds()
		}
	}
	return out, nil
}
