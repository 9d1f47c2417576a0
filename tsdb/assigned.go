package tsdb

import (
	"context"
	"fmt"
	"maps"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// ClassesWithin is how long it takes at most until every open store of a table writes the points of a tenant in the class that
// its profile has come to name, of SchemaOptions.Classes. A store that cannot read the profiles goes by what it has read last;
// one that never could rejects points of schemas with Classes. Reads find points in every class, whatever a store knows.
const ClassesWithin = 2 * time.Minute

const (
	// classesDue is how old what is known is when a write has it read again, behind it.
	classesDue = ClassesWithin / 2
	// classesWait bounds a read where something is known, so that no write waits for long.
	classesWait = 5 * time.Second
	// classesPause is how long a store leaves the profiles alone where they could not be read.
	classesPause = 10 * time.Second
)

// assigned are the classes that profiles name. They do not change once they are known.
type assigned struct {
	catalog.Changes           // up to which they are known
	readAll         time.Time // when all of them were read last
	tenants         map[string]*catalog.Assignment
}

func newAssigned(s *tenancy) *kept[assigned] {
	k := &kept[assigned]{load: s.readAssigned}
	k.open(s.watch, refreshing{due: classesDue, within: ClassesWithin, wait: classesWait, pause: classesPause})
	return k
}

// readAssigned reads the classes that profiles name: the log of changes, and the profiles that it lists. Where it does not tell,
// and once in a long while, it scans all profiles.
func (s *tenancy) readAssigned(ctx context.Context, known *assigned) (*assigned, error) {
	if known == nil {
		known = new(assigned)
	}
	c, all, err := s.changedProfiles(ctx, known.Changes, known.readAll)
	if status.Code(err) == codes.NotFound {
		return &assigned{}, nil // a table that is not there has none, and the call itself will say so
	}
	if err != nil {
		return nil, s.unassigned(err)
	}
	next, read := &assigned{Changes: c, tenants: map[string]*catalog.Assignment{}}, catalog.Assignments(ctx, s.whole)
	if !all {
		if len(c.Names) == 0 {
			return known, nil
		}
		next.readAll, next.tenants, read = known.readAll, maps.Clone(known.tenants), catalog.AssignmentsOf(ctx, s.whole, c.Names)
		for _, name := range c.Names {
			delete(next.tenants, name)
		}
	} else {
		next.readAll = time.Now()
	}
	for one, err := range read {
		if err != nil {
			return nil, s.unassigned(err)
		}
		next.tenants[one.Tenant] = one.Assignment
	}
	return next, nil
}

// changedProfiles reads which profiles have changed since those were read that are known up to some changes; all says that this cannot
// be told, or that all were read long ago, or never. It is called before the profiles are read, so that it is never newer than they are.
func (s *tenancy) changedProfiles(ctx context.Context, known catalog.Changes, readAll time.Time) (c catalog.Changes, all bool, err error) {
	epoch, recent := "", !readAll.IsZero() && time.Since(readAll) < allAgain
	if recent {
		epoch = known.Epoch
	}
	c, err = catalog.ProfileChanges.Read(ctx, s.whole, epoch)
	return c, !recent || c.All && c.Epoch != epoch, err
}

func (s *tenancy) unassigned(err error) error {
	return fmt.Errorf("tsdb: read the retention classes of tenants: %w", s.explain(err))
}

// of returns the dataset that writes the points of a tenant.
func (a *assigned) of(tenant string, d *dataset.Dataset) *dataset.Dataset {
	one := a.tenants[tenant]
	if one == nil {
		return d.In("")
	}
	return d.In(one.Of(d.Name))
}
