package tenancy

import (
	"context"
	"errors"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/internal/refresh"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// profileLimits is the state of the last read of the limits in profiles, besides the limits that the limiter holds. It
// is immutable once published.
type profileLimits struct {
	catalog.Changes                  // the state of the change log at that read
	readAll         time.Time        // time of the last read of all profiles
	Refused         map[string]error // tenants with an invalid document and no earlier one in the limiter, and the error
}

// withProfileLimits makes the store take limits from profiles.
func (s *Tenancy) withProfileLimits() error {
	if s.Limits == nil {
		var err error
		if s.Limits, err = limit.New(limit.Table{}, limit.Options{Clock: s.Clock}); err != nil {
			return err
		}
	}
	valid := map[string]bool{} // tenants whose document the limiter has; used only by loads, which never overlap
	s.ProfileLimits = &refresh.Value[profileLimits]{Load: func(ctx context.Context, known *profileLimits) (*profileLimits, error) {
		return s.readProfileLimits(ctx, known, valid)
	}}
	s.ProfileLimits.Open(s.Watch, refresh.Times{Due: classesDue, Within: ClassesWithin, Wait: classesWait, Pause: classesPause})
	return nil
}

// readProfileLimits passes the documents of changed profiles to the limiter or, under the same conditions as
// readAssigned, those of all profiles, one after the other; it keeps none of them. valid holds the tenants whose
// document the limiter has; it is correct after a failed read, too.
func (s *Tenancy) readProfileLimits(ctx context.Context, known *profileLimits, valid map[string]bool) (*profileLimits, error) {
	if known == nil {
		known = new(profileLimits)
	}
	c, all, err := s.changedProfiles(ctx, known.Changes, known.readAll)
	if status.Code(err) == codes.NotFound {
		return &profileLimits{}, nil // the call itself reports the error
	}
	if err != nil {
		return nil, s.Explain(err)
	}
	if !all && len(c.Names) == 0 {
		return known, nil
	}
	next := &profileLimits{Changes: c, readAll: time.Now(), Refused: map[string]error{}}
	read, without := catalog.ProfileLimits(ctx, s.Whole, nil), maps.Clone(valid) // starts with all; documents that are found are removed
	if !all {
		next.readAll = known.readAll
		maps.Copy(next.Refused, known.Refused)
		read, without = catalog.ProfileLimits(ctx, s.Whole, c.Names), map[string]bool{}
		for _, name := range c.Names {
			without[name] = true
		}
	}
	set := func(name string, doc []byte) {
		id, err := tenant.Parse(name)
		if err != nil {
			return // no tenant can have this name
		}
		delete(next.Refused, name)
		switch err := gate.Of(s.Limits).SetProfile(id, doc); {
		case err == nil && doc != nil:
			valid[name] = true
		case err == nil:
			delete(valid, name)
		case !valid[name]: // otherwise the last valid document applies
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

// RenewProfiles reads the profiles again, if the store has read them before.
func (s *Tenancy) RenewProfiles(ctx context.Context) error {
	err := s.Classes.RefreshIfLoaded(ctx)
	if s.ProfileLimits != nil {
		err = errors.Join(err, s.ProfileLimits.RefreshIfLoaded(ctx))
	}
	return err
}
