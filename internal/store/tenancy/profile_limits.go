package tenancy

import (
	"context"
	"encoding/json"
	"errors"
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
	valid           map[string]bool  // tenants whose document the limiter has
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
	s.ProfileLimits = &refresh.Value[profileLimits]{Load: s.readProfileLimits}
	s.ProfileLimits.Open(s.Watch, refresh.Times{Due: classesDue, Within: ClassesWithin, Wait: classesWait, Pause: classesPause})
	return nil
}

// readProfileLimits gives the limiter the documents of the profiles that have changed, or, as readAssigned, of all.
func (s *Tenancy) readProfileLimits(ctx context.Context, known *profileLimits) (*profileLimits, error) {
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
	docs := map[string]json.RawMessage{}
	next := &profileLimits{Changes: c, readAll: known.readAll, valid: map[string]bool{}, Refused: map[string]error{}}
	read := catalog.ProfileLimits(ctx, s.Whole)
	if all {
		next.readAll = time.Now()
		for name := range known.valid {
			docs[name] = nil // unless there is one
		}
	} else {
		read = catalog.ProfileLimitsOf(ctx, s.Whole, c.Names)
		for name := range known.valid {
			next.valid[name] = true
		}
		for name, err := range known.Refused {
			next.Refused[name] = err
		}
		for _, name := range c.Names {
			docs[name] = nil
		}
	}
	for one, err := range read {
		if err != nil {
			return nil, s.Explain(err)
		}
		docs[one.Tenant] = one.Limits
	}
	for name, doc := range docs {
		id, err := tenant.Parse(name)
		if err != nil {
			continue // nobody can be this tenant
		}
		delete(next.valid, name)
		delete(next.Refused, name)
		switch err := s.Limits.SetProfile(id, doc); {
		case err == nil && doc != nil, err != nil && known.valid[name]: // the last valid one applies
			next.valid[name] = true
		case err != nil:
			next.Refused[name] = err
		}
	}
	return next, nil
}

// RenewProfiles reads what profiles say as it is now, where the store has read them before.
func (s *Tenancy) RenewProfiles(ctx context.Context) error {
	err := s.Classes.RefreshIfLoaded(ctx)
	if s.ProfileLimits != nil {
		err = errors.Join(err, s.ProfileLimits.RefreshIfLoaded(ctx))
	}
	return err
}
