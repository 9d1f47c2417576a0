package tenancy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/refresh"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// profileLimits is what a store knows of the limits in profiles, beside what its limiter holds. It does not change once it is
// known.
type profileLimits struct {
	catalog.Changes                  // up to which they are known
	readAll         time.Time        // when all of them were read last
	Refused         map[string]error // tenants whose document is not valid, and why, where the limiter has none
}

// withProfileLimits makes the store take limits from profiles.
func (s *Tenancy) withProfileLimits() error {
	if s.Limits == nil {
		var err error
		if s.Limits, err = limit.New(limit.Table{}, limit.Options{Clock: s.Clock}); err != nil {
			return err
		}
	}
	valid := map[string]bool{} // tenants whose document the limiter has; of the loads, of which there is one at a time
	s.ProfileLimits = &refresh.Value[profileLimits]{Load: func(ctx context.Context, known *profileLimits) (*profileLimits, error) {
		return s.readProfileLimits(ctx, known, valid)
	}}
	s.ProfileLimits.Open(s.Watch, refresh.Times{Due: classesDue, Within: ClassesWithin, Wait: classesWait, Pause: classesPause})
	return nil
}

// readProfileLimits gives the limiter the documents of the profiles that have changed, or, as readAssigned, of all, one after the
// other: none of them is held here. valid are the tenants whose document the limiter has. It is right after a read that fails, too.
func (s *Tenancy) readProfileLimits(ctx context.Context, known *profileLimits, valid map[string]bool) (*profileLimits, error) {
	if known == nil {
		known = new(profileLimits)
	}
	c, all, err := s.changedProfiles(ctx, known.Changes, known.readAll)
	if status.Code(err) == codes.NotFound {
		return &profileLimits{}, nil // as the call itself will say
	}
	if err != nil {
		return nil, s.Explain(err)
	}
	if !all && len(c.Names) == 0 {
		return known, nil
	}
	next := &profileLimits{Changes: c, readAll: time.Now(), Refused: map[string]error{}}
	read, without := catalog.ProfileLimits(ctx, s.Whole), maps.Clone(valid) // without a document, unless one is found
	if !all {
		next.readAll = known.readAll
		maps.Copy(next.Refused, known.Refused)
		read, without = catalog.ProfileLimitsOf(ctx, s.Whole, c.Names), map[string]bool{}
		for _, name := range c.Names {
			without[name] = true
		}
	}
	set := func(name string, doc []byte) {
		id, err := tenant.Parse(name)
		if err != nil {
			return // nobody can be this tenant
		}
		delete(next.Refused, name)
		switch err := s.Limits.SetProfile(id, doc); {
		case err == nil && doc != nil:
			valid[name] = true
		case err == nil:
			delete(valid, name)
		case !valid[name]: // else the last valid one applies
			next.Refused[name] = err
		}
	}
	for one, err := range read {
		if err != nil {
			return nil, s.Explain(err)
		}
		delete(without, one.Tenant)
		set(one.Tenant, one.Limits)
	}
	for name := range without {
		set(name, nil)
	}
	return next, nil
}

// KnowLimits refuses a call for a tenant whose limits are not known.
func (s *Tenancy) KnowLimits(ctx context.Context, id tenant.ID) error {
	if s.ProfileLimits == nil {
		return nil
	}
	p := s.ProfileLimits.Fresh()
	if p == nil {
		ctx, cancel := s.Whole.Bound(ctx, false)
		defer cancel()
		var err error
		if p, err = s.ProfileLimits.Get(ctx); err != nil {
			return fmt.Errorf("tsdb: read the limits of tenants: %w", err)
		}
	}
	if err := p.Refused[id.String()]; err != nil {
		return fmt.Errorf("tsdb: the limits in the profile of tenant %s: %w", id, err)
	}
	return nil
}

// RenewProfiles reads what profiles say as it is now, where the store has read them before.
func (s *Tenancy) RenewProfiles(ctx context.Context) error {
	err := s.Classes.RefreshIfLoaded(ctx)
	if s.ProfileLimits != nil {
		err = errors.Join(err, s.ProfileLimits.RefreshIfLoaded(ctx))
	}
	return err
}
