package tenancy

import (
	"context"
	"fmt"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/refresh"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/tenant"
)

// ClassesWithin is the maximum time until every open store of a table writes a tenant's points in the class of its
// changed profile. A store that cannot read the profiles uses those it has read last; a store that has never read them
// rejects points of schemas with Classes. Reads always find points in every class.
const ClassesWithin = 2 * time.Minute

const (
	// classesDue is the age at which a write starts a new read in the background.
	classesDue = ClassesWithin / 2
	// classesWait is how long a write waits for a read at most, if older classes are known.
	classesWait = 5 * time.Second
	// classesPause is the pause after a read that failed.
	classesPause = 10 * time.Second
)

// Classes are the retention classes that profiles name. A value never changes; a new read makes a new one.
type Classes struct {
	catalog.Changes           // the state of the change log at that read
	readAll         time.Time // time of the last read of all classes
	tenants         map[string]*catalog.Assignment
}

func newAssigned(s *Tenancy) *refresh.Value[Classes] {
	k := &refresh.Value[Classes]{Load: s.readAssigned}
	k.Open(s.Watch, refresh.Times{Due: classesDue, Within: ClassesWithin, Wait: classesWait, Pause: classesPause})
	return k
}

// readAssigned reads the classes that profiles name: the log of changes, and the profiles that it lists. If the log
// does not reach back far enough, and once an hour, it scans all profiles.
func (s *Tenancy) readAssigned(ctx context.Context, known *Classes) (*Classes, error) {
	if known == nil {
		known = new(Classes)
	}
	c, all, err := s.changedProfiles(ctx, known.Changes, known.readAll)
	if status.Code(err) == codes.NotFound {
		return &Classes{}, nil // the call itself reports that the table is missing
	}
	if err != nil {
		return nil, s.unassigned(err)
	}
	next, names := &Classes{Changes: c, readAll: time.Now(), tenants: map[string]*catalog.Assignment{}}, []string(nil)
	if !all {
		if len(c.Names) == 0 {
			return known, nil
		}
		next.readAll, next.tenants, names = known.readAll, maps.Clone(known.tenants), c.Names
		for _, name := range names {
			delete(next.tenants, name)
		}
	}
	for one, err := range catalog.Assignments(ctx, s.Whole, names) {
		if err != nil {
			return nil, s.unassigned(err)
		}
		next.tenants[one.Tenant] = one.Assignment
	}
	return next, nil
}

// changedProfiles reads which profiles have changed since known. all says that the log cannot tell, or that all
// profiles were read too long ago, or never. Call it before the profiles are read, so that the log is never newer than
// they are.
func (s *Tenancy) changedProfiles(ctx context.Context, known catalog.Changes, readAll time.Time) (c catalog.Changes, all bool, err error) {
	epoch, recent := "", !readAll.IsZero() && time.Since(readAll) < allAgain
	if recent {
		epoch = known.Epoch
	}
	c, err = catalog.ProfileChanges.Read(ctx, s.Whole, epoch)
	return c, !recent || c.All && c.Epoch != epoch, err
}

func (s *Tenancy) unassigned(err error) error {
	return fmt.Errorf("tsdb: read the retention classes of tenants: %w", s.Explain(err))
}

// DatasetFor returns the dataset with which a tenant's points are written.
func (a *Classes) DatasetFor(tenant string, d *dataset.Dataset) *dataset.Dataset {
	one := a.tenants[tenant]
	if one == nil {
		return d.In("")
	}
	return d.In(one.Of(d.Name))
}

// DatasetForCheck returns the dataset for the first check of a point that is checked again when it is sent: the one
// that writes the tenant's points, as far as is known. While no classes are known, it is the one whose class keeps
// points longest. It does not wait.
func (s *Tenancy) DatasetForCheck(d *dataset.Dataset, id tenant.ID) *dataset.Dataset {
	if d.Choices == nil {
		return d
	}
	if a := s.Classes.Peek(); a != nil {
		return a.DatasetFor(id.String(), d)
	}
	longest := d
	for _, c := range d.Choices {
		if !c.Classes[0].Bounded || longest.Classes[0].Bounded && c.Classes[0].Age > longest.Classes[0].Age {
			longest = c
		}
	}
	return longest
}
