package tsdb

import (
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// ErasedWithin is how long it takes at most until every open store of a table honours an erasure mark: until a store refuses
// reads and writes of an erased tenant with ErrErased, and its writers drop the points that they hold of it. A store that
// cannot read the marks uses those that it has read last; one that never could refuses reads and writes.
const ErasedWithin = tenancy.ErasedWithin

// ClassesWithin is how long it takes at most until every open store of a table writes the points of a tenant in the class that
// its profile has come to name, of SchemaOptions.Classes. A store that cannot read the profiles uses what it has read last;
// one that never could rejects points of schemas with Classes. Reads find points in every class, whatever a store knows.
const ClassesWithin = tenancy.ClassesWithin

// ViewID returns the ID of a tenant's authorized view, for those who grant rights on it: "t-", up to 21 bytes of the
// tenant's name, "-", and 26 characters of a hash of the whole name. The ID of a tenant never changes; the zero ID's is
// empty. It does no I/O.
func ViewID(id tenant.ID) string { return tenancy.ViewID(id) }
