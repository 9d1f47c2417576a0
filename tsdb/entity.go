package tsdb

import (
	"strings"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Entity is what is measured: one value for each key field of its schema, in their order. Entities are comparable with ==
// and usable as map keys. The zero Entity has no parts and is refused by every call.
//
// Parts of text fields may hold any text; Schema.Entity makes those of other kinds. They become part of row keys, which show
// in logs and in Key Visualizer, so they should hold no personal data.
//
// It has no exported fields, so that encoding/json writes it, also within a Point or a Page, as {}: answer with a type of your
// own, made by Schema.Scan or from Parts.
type Entity struct{ path string }

// NewEntity returns the entity with those parts, as they are stored. It cannot fail: a wrong number of parts, an empty part,
// invalid UTF-8 and a part that its field's kind does not write are reported, with ErrInvalid, by the call that uses the
// entity with a schema. It allocates its text once.
func NewEntity(parts ...string) Entity { return Entity{path: rowkey.Path(parts...)} }

// Parts returns the values of the key fields, as they are stored: Schema.Scan reads those of other kinds than text. It allocates.
func (e Entity) Parts() []string { return rowkey.Parts(e.path) }

// String returns the parts as they stand in row keys: joined by '#', with the bytes 0x00 to 0x25 as %XX.
func (e Entity) String() string { return e.path }

// Compare orders entities as their parts are ordered as tuples, byte by byte, which is the order of their rows.
func (e Entity) Compare(o Entity) int { return strings.Compare(e.path, o.path) }

// Prefix is the first parts that a group of entities has in common: fewer than the schema has key fields. It is a type of
// its own so that no call takes a group for one entity by mistake. The zero Prefix has no parts and is refused; all
// entities of a dataset are AllEntities, by name.
type Prefix struct {
	path string
	all  bool
}

// NewPrefix returns the prefix with those parts. It cannot fail, as NewEntity cannot.
func NewPrefix(parts ...string) Prefix { return Prefix{path: rowkey.Path(parts...)} }

// AllEntities returns the prefix of every entity of a dataset.
func AllEntities() Prefix { return Prefix{all: true} }

// Parts returns the values of the first key fields, as they are stored. It allocates.
func (p Prefix) Parts() []string { return rowkey.Parts(p.path) }

// String returns the parts as they stand in row keys; "" for AllEntities.
func (p Prefix) String() string { return p.path }
