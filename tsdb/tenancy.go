package tsdb

import (
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// ErasedWithin is the maximum time until every open store of a table honours a new erasure mark: it then refuses reads and
// writes of the erased tenant with ErrErased, and its writers drop the tenant's points. A store that cannot read the marks
// uses those it has read last; a store that has never read them refuses reads and writes.
const ErasedWithin = tenancy.ErasedWithin

// ClassesWithin is the maximum time until every open store of a table writes a tenant's points in the class of its changed
// profile (SchemaOptions.Classes). A store that cannot read the profiles uses those it has read last; a store that has never
// read them rejects points of schemas with Classes. Reads always find points in every class.
const ClassesWithin = tenancy.ClassesWithin

// ViewID returns the ID of a tenant's authorized view, for granting rights on it: "t-", up to 21 bytes of the tenant's name,
// "-", and 26 characters of a hash of the whole name. A tenant's ID never changes; that of the zero ID is "". It does no I/O.
func ViewID(id tenant.ID) string { return tenancy.ViewID(id) }
