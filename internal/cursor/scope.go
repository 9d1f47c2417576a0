package cursor

import "encoding/binary"

// Kind is the kind of items that a cursor pages over. A place of one kind is not accepted as another.
type Kind byte

const (
	// Points are the points of one entity. The place of a point is its time.
	Points Kind = 1
	// Newest are the newest points of the entities under a prefix, Entities only their names. The place is the path of
	// an entity.
	Newest   Kind = 2
	Entities Kind = 3
	// Events are the points of one entity that have an identity. The place is a time and an ID.
	Events Kind = 4
	// UnderPrefix are the points of the entities under a prefix. The place is a path, a time and an ID.
	UnderPrefix Kind = 5
	// Followed are the points that a follower of an entity or of a prefix delivers. The place is described by package
	// follow.
	Followed Kind = 6
)

// Scope is the query that a cursor belongs to. Scopes that differ in anything have different encodings.
type Scope struct {
	Kind            Kind
	Tenant, Dataset string
	Precision       byte   // the unit of the times below
	Path            string // of the entity, or of the prefix
	Oldest, Newest  int64  // the first and last time of the query, in units
	Reverse         bool   // oldest first
}

// appendTo appends the encoding of s. A length precedes each field of variable length, so no two scopes have the same
// encoding.
func (s Scope) appendTo(b []byte) []byte {
	b = append(b, byte(s.Kind), s.Precision, 0)
	if s.Reverse {
		b[len(b)-1] = 1
	}
	b = binary.BigEndian.AppendUint64(b, uint64(s.Oldest))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Newest))
	for _, text := range [...]string{s.Tenant, s.Dataset, s.Path} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}
