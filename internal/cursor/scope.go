package cursor

import "encoding/binary"

// Kind is what a cursor pages over. Places of different kinds are not read as one another.
type Kind byte

const (
	// Points are the points of one entity. A place among them is a time.
	Points Kind = 1
	// Newest are the newest points of the entities below a prefix, Entities only their names. A place among either is the path
	// of an entity.
	Newest   Kind = 2
	Entities Kind = 3
	// Events are the points of one entity that have an identity. A place among them is a time and an ID.
	Events Kind = 4
)

// Scope is what a cursor belongs to. Two scopes that differ in anything have different encodings.
type Scope struct {
	Kind            Kind
	Tenant, Dataset string
	Precision       byte   // what the units below are
	Path            string // of the entity, or of the prefix
	Oldest, Newest  int64  // the first and last time that is asked for, in units
	Reverse         bool   // oldest first
}

// appendTo appends the encoding of s. What has no fixed length is led by its length, so no two scopes read alike.
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
