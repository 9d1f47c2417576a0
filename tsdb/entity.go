package tsdb

import (
	"net/url"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Entity is what is measured: one value per key field of its schema, in order. Entities are comparable with == and
// usable as map keys. The zero Entity has no parts; every call refuses it.
//
// Parts become part of row keys, which appear in logs and in Key Visualizer, so they should hold no personal data.
//
// An Entity marshals as the text of String: in JSON as a string or an object key. flag.TextVar accepts it.
type Entity struct {
	entityGate
	path string
}

// NewEntity returns the entity with these parts in their stored form. Schema.Entity converts values of kinds other than
// text. NewEntity cannot fail: the call that uses the entity refuses a wrong number of parts, an empty part, invalid
// UTF-8, or a part that does not fit its field's kind, with ErrInvalid. It costs one allocation.
func NewEntity(parts ...string) Entity { return Entity{path: rowkey.Path(parts...)} }

// Parts returns the values of the key fields in their stored form. Schema.Scan converts those of kinds other than text.
// It allocates.
func (e Entity) Parts() []string { return rowkey.Parts(e.path) }

// String returns the parts joined by '/', such as "berlin/roof-7". In a part, '/', '%', control bytes and bytes that
// are not UTF-8 are written as %XX. Two different entities never have the same text. The zero Entity is "".
func (e Entity) String() string { return rowkey.Text(e.path) }

// MarshalText implements encoding.TextMarshaler. It returns String and never fails.
func (e Entity) MarshalText() ([]byte, error) { return rowkey.AppendText(nil, e.path), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It parses the text of String, and accepts %XX for any byte. Empty
// text is the zero Entity. A '%' without two hexadecimal digits is refused with ErrInvalid. The call that uses the
// entity checks whether it fits the schema.
func (e *Entity) UnmarshalText(text []byte) error {
	if e == nil {
		return invalid.New(ErrInvalid, "entity", "nil", "a pointer to an Entity")
	}
	if len(text) == 0 {
		e.path = ""
		return nil
	}
	parts := strings.Split(string(text), "/")
	for i, part := range parts {
		var err error
		if parts[i], err = url.PathUnescape(part); err != nil {
			return invalid.New(ErrInvalid, "entity", invalid.Quote(string(text)), "parts joined by /, in which a % stands before two hexadecimal digits")
		}
	}
	e.path = rowkey.Path(parts...)
	return nil
}

// Compare orders entities by their parts, as tuples, byte by byte. This is the order of their rows.
func (e Entity) Compare(o Entity) int { return strings.Compare(e.path, o.path) }

// Prefix is the leading parts that a group of entities shares: fewer than the schema has key fields. The zero Prefix
// has no parts and is refused; use AllEntities for all entities of a dataset.
type Prefix struct {
	prefixGate
	path string
	all  bool
}

// NewPrefix returns the prefix with these parts in their stored form. Like NewEntity it cannot fail.
func NewPrefix(parts ...string) Prefix { return Prefix{path: rowkey.Path(parts...)} }

// AllEntities returns the prefix of every entity of a dataset.
func AllEntities() Prefix { return Prefix{all: true} }

// Parts returns the values of the leading key fields in their stored form. It allocates.
func (p Prefix) Parts() []string { return rowkey.Parts(p.path) }

// The text of AllEntities, and the escaped text of a prefix whose only part is "*".
const (
	allText  = "*"
	starText = "%2A"
)

// String returns the parts as Entity.String does, and "*" for AllEntities. A prefix whose only part is "*" is "%2A".
// The zero Prefix is "".
func (p Prefix) String() string {
	text := rowkey.Text(p.path)
	switch {
	case p.all:
		return allText
	case text == allText:
		return starText
	}
	return text
}
