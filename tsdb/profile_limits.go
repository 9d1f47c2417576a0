package tsdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// profileLimits is what a store knows of the limits in profiles, beside what its limiter holds. It does not change once it is
// known.
type profileLimits struct {
	catalog.Changes                  // up to which they are known
	readAll         time.Time        // when all of them were read last
	valid           map[string]bool  // tenants whose document the limiter has
	refused         map[string]error // tenants whose document is not valid, and why, where the limiter has none
}

// withProfileLimits makes the store take limits from profiles.
func (s *tenancy) withProfileLimits() error {
	if s.limits == nil {
		var err error
		if s.limits, err = limit.New(limit.Table{}, limit.Options{Clock: s.clock}); err != nil {
			return err
		}
	}
	s.profileLimits = &kept[profileLimits]{load: s.readProfileLimits}
	s.profileLimits.open(s.watch, refreshing{due: classesDue, within: ClassesWithin, wait: classesWait, pause: classesPause})
	return nil
}

// knowLimits refuses a call that is held to limits which are not known.
func (r *Repository[T]) knowLimits(ctx context.Context) error {
	if r.store.profileLimits == nil || r.unlimited {
		return nil
	}
	p := r.store.profileLimits.fresh()
	if p == nil {
		ctx, cancel := r.store.whole.Bound(ctx, false)
		defer cancel()
		var err error
		if p, err = r.store.profileLimits.get(ctx); err != nil {
			return fmt.Errorf("tsdb: read the limits of tenants: %w", err)
		}
	}
	if err := p.refused[r.tenant.String()]; err != nil {
		return fmt.Errorf("tsdb: the limits in the profile of tenant %s: %w", r.tenant, err)
	}
	return nil
}

// readProfileLimits gives the limiter the documents of the profiles that have changed, or, as readAssigned, of all.
func (s *tenancy) readProfileLimits(ctx context.Context, known *profileLimits) (*profileLimits, error) {
	if known == nil {
		known = new(profileLimits)
	}
	c, all, err := s.changedProfiles(ctx, known.Changes, known.readAll)
	if status.Code(err) == codes.NotFound {
		return &profileLimits{}, nil // as the call itself will say
	}
	if err != nil {
		return nil, s.explain(err)
	}
	if !all && len(c.Names) == 0 {
		return known, nil
	}
	docs := map[string]json.RawMessage{}
	next := &profileLimits{Changes: c, readAll: known.readAll, valid: map[string]bool{}, refused: map[string]error{}}
	read := catalog.ProfileLimits(ctx, s.whole)
	if all {
		next.readAll = time.Now()
		for name := range known.valid {
			docs[name] = nil // unless there is one
		}
	} else {
		read = catalog.ProfileLimitsOf(ctx, s.whole, c.Names)
		for name := range known.valid {
			next.valid[name] = true
		}
		for name, err := range known.refused {
			next.refused[name] = err
		}
		for _, name := range c.Names {
			docs[name] = nil
		}
	}
	for one, err := range read {
		if err != nil {
			return nil, s.explain(err)
		}
		docs[one.Tenant] = one.Limits
	}
	for name, doc := range docs {
		id, err := tenant.Parse(name)
		if err != nil {
			continue // nobody can be this tenant
		}
		delete(next.valid, name)
		delete(next.refused, name)
		switch err := s.limits.SetProfile(id, doc); {
		case err == nil && doc != nil, err != nil && known.valid[name]: // the last valid one applies
			next.valid[name] = true
		case err != nil:
			next.refused[name] = err
		}
	}
	return next, nil
}

// renewProfiles reads what profiles say as it is now, where the store has read them before.
func (s *tenancy) renewProfiles(ctx context.Context) error {
	err := s.classes.renew(ctx)
	if s.profileLimits != nil {
		err = errors.Join(err, s.profileLimits.renew(ctx))
	}
	return err
}
