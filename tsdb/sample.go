package tsdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// SampleOptions are what Store.Sample may decide.
type SampleOptions struct {
	// Entities is how many entities the sample has at most, 1 to 10,000. Zero is 1,000.
	Entities int
}

const (
	defaultSampled = 1_000
	mostSampled    = 10_000
	sampledPoints  = 10 // of an entity, by whose times its rate is reckoned
)

// Sample picks entities at random of what a tenant has stored of a dataset, for Advise, and returns them with the dataset and those
// beside it as the catalogue describes them. An entity's rate is that of its newest ten points up to now, so that one which has
// fallen silent has hardly any, and its payload the largest of theirs. Arrival is not known.
//
// It is an operator's call, and asks for no tenant in ctx; the tenant's limits do not hold it. It reads the names of all the
// tenant's entities in the dataset, as Repository.Entities does, and then ten points of each that it has picked, payloads
// included; of more than MaxSample entities it knows the first only. It is bounded by ctx and by the timeout of scans for each
// of the two.
//
// Errors match ErrInvalid for a dataset that the catalogue does not have, ErrTenantMismatch where ctx carries another tenant, and
// ErrErased.
func (s *Store) Sample(ctx context.Context, name string, id tenant.ID, opts SampleOptions) (_ Dataset, sample Sample, err error) {
	ctx, op := s.begin(ctx, telemetry.Sample)
	defer func() { op.End(err) }()
	most := opts.Entities
	if most == 0 {
		most = defaultSampled
	}
	if most < 1 || most > mostSampled {
		return nil, Sample{}, invalid.New(ErrInvalid, "Entities", strconv.Itoa(most), fmt.Sprintf("0 for %d, or 1 to %d", defaultSampled, mostSampled))
	}
	if err := s.admit(); err != nil {
		return nil, Sample{}, err
	}
	if _, ok := tenant.FromContext(ctx); !ok && !id.IsZero() {
		ctx = tenant.NewContext(ctx, id)
	}
	if err := s.core.Admit(ctx, id); err != nil {
		return nil, Sample{}, err
	}
	d, beside, err := s.stored(ctx, name)
	if err != nil {
		return nil, Sample{}, err
	}
	r := sizes(d).For(s, id)
	r.rows.Unlimited = true
	picked, all, err := pick(ctx, r, most)
	if err != nil {
		return nil, Sample{}, err
	}
	sample = Sample{OtherDatasets: beside}
	if len(picked) > 0 {
		sample.Share = float64(len(picked)) / float64(all)
	}
	if sample.Entities, err = measured(ctx, r, picked); err != nil {
		return nil, Sample{}, err
	}
	return shaped{d}, sample, nil
}

// stored returns a dataset of the catalogue and the others.
func (s *Store) stored(ctx context.Context, name string) (found *dataset.Dataset, beside []Dataset, err error) {
	all, err := catalog.All(ctx, s.core.Whole)
	if err != nil {
		return nil, nil, fmt.Errorf("tsdb: read the catalogue: %w", s.core.Explain(err))
	}
	for _, e := range all {
		d, err := dataset.FromCatalog(e)
		switch {
		case e.Name == name && err != nil:
			return nil, nil, err
		case e.Name == name:
			found = d
		case err == nil: // others only count, and need not be readable
			beside = append(beside, shaped{d})
		}
	}
	if found == nil {
		return nil, nil, invalid.New(ErrInvalid, "dataset", invalid.Quote(name), "one that the catalogue has")
	}
	return found, beside, nil
}

// sizes returns a schema of the dataset whose values are the lengths of payloads. It is for reading.
func sizes(d *dataset.Dataset) *Schema[int] {
	s := &Schema[int]{d: *d, plain: true}
	for range d.Tags {
		s.decoders = append(s.decoders, func(payload []byte) (int, error) { return len(payload), nil })
	}
	return s
}

// pick returns up to most of the repository's entities, each as likely as any other, and of how many. It picks the same of the same.
func pick(ctx context.Context, r *Repository[int], most int) (picked []Entity, all int, err error) {
	rng := rand.New(rand.NewPCG(1, 2))
	for e, err := range r.Entities(ctx, AllEntities()) {
		if err != nil {
			return nil, 0, err
		}
		all++
		switch i := rng.IntN(all); {
		case len(picked) < most:
			picked = append(picked, e)
		case i < most:
			picked[i] = e
		}
		if all == MaxSample {
			break
		}
	}
	return picked, all, nil
}

// measured returns what the newest points of entities tell.
func measured(ctx context.Context, r *Repository[int], entities []Entity) ([]Sampled, error) {
	histories, err := r.LatestManyN(ctx, entities, sampledPoints)
	if histories == nil && err != nil {
		return nil, err
	}
	now := r.store.core.Clock()
	out := make([]Sampled, len(histories))
	for i, h := range histories {
		if _, undecoded := errors.AsType[PointErrors](h.Err); h.Err != nil && !undecoded {
			return nil, h.Err
		}
		out[i] = Sampled{Tenant: r.rows.Tenant, Entity: h.Entity}
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
