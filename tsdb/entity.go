package tsdb

import (
	"net/url"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Entity is what is measured: one value for each key field of its schema, in their order. Entities are comparable with == and
// usable as map keys. The zero Entity has no parts and is refused by every call.
//
// Parts of text fields may hold any text; Schema.Entity makes those of other kinds. They become part of row keys, which show
// in logs and in Key Visualizer, so they should hold no personal data.
//
// Its text is that of String: in JSON it is a string or the key of an object, and flag.TextVar takes it as a flag.
type Entity struct{ path string }

// NewEntity returns the entity with those parts, as they are stored. It cannot fail: a wrong number of parts, an empty part,
// invalid UTF-8 and a part that its field's kind does not write are reported, with ErrInvalid, by the call that uses the
// entity with a schema. It allocates its text once.
func NewEntity(parts ...string) Entity { return Entity{path: rowkey.Path(parts...)} }

// Parts returns the values of the key fields, as they are stored: Schema.Scan reads those of other kinds than text. It allocates.
func (e Entity) Parts() []string { return rowkey.Parts(e.path) }

// String returns the parts joined by '/', such as "berlin/roof-7". In a part, '/', '%', control bytes and bytes that are not
// UTF-8 are %XX. Two entities never have the same text. That of the zero Entity is empty.
func (e Entity) String() string { return rowkey.Text(e.path) }

// AppendText implements encoding.TextAppender: it appends what String returns, and never fails.
func (e Entity) AppendText(b []byte) ([]byte, error) { return rowkey.AppendText(b, e.path), nil }

// MarshalText implements encoding.TextMarshaler: it returns what String returns, and never fails.
func (e Entity) MarshalText() ([]byte, error) { return e.AppendText(nil) }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns, and also text in which other bytes are %XX.
// Empty text is the zero Entity. A '%' without two hexadecimal digits is refused with ErrInvalid. Whether the entity fits a schema
// is checked by the call that uses it.
func (e *Entity) UnmarshalText(text []byte) error {
	path, ok := pathOf(string(text))
	switch {
	case e == nil:
		return invalid.New(ErrInvalid, "entity", "nil", "a pointer to an Entity")
	case !ok:
		return invalid.New(ErrInvalid, "entity", invalid.Quote(string(text)), entityText)
	}
	e.path = path
	return nil
}

// pathOf returns the path of an entity or a prefix with that text; ok is false if a '%' begins no escape.
func pathOf(text string) (path string, ok bool) {
	if text == "" {
		return "", true
	}
	parts := strings.Split(text, "/")
	for i, part := range parts {
		var err error
		if parts[i], err = url.PathUnescape(part); err != nil {
			return "", false
		}
	}
	return rowkey.Path(parts...), true
}

// entityText is what the text of an entity or a prefix has to be.
const entityText = "parts joined by /, in which a % stands before two hexadecimal digits"

// Compare orders entities as their parts are ordered as tuples, byte by byte, which is the order of their rows.
func (e Entity) Compare(o Entity) int { return strings.Compare(e.path, o.path) }

// Prefix is the first parts that a group of entities has in common: fewer than the schema has key fields. It is a type of
// its own so that no call takes a group for one entity by mistake. The zero Prefix has no parts and is refused; all
// entities of a dataset are AllEntities, by name. Its text is that of String.
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

// allText is the text of AllEntities; that of the prefix with this one part is escaped.
const (
	allText  = "*"
	starText = "%2A"
)

// String returns the parts as Entity.String does, and "*" for AllEntities. The prefix whose one part is "*" is "%2A". That of the
// zero Prefix is empty.
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

// AppendText implements encoding.TextAppender: it appends what String returns, and never fails.
func (p Prefix) AppendText(b []byte) ([]byte, error) { return append(b, p.String()...), nil }

// MarshalText implements encoding.TextMarshaler: it returns what String returns, and never fails.
func (p Prefix) MarshalText() ([]byte, error) { return p.AppendText(nil) }

// UnmarshalText implements encoding.TextUnmarshaler: it reads what String returns, as Entity.UnmarshalText does. Empty text is the
// zero Prefix.
func (p *Prefix) UnmarshalText(text []byte) error {
	path, ok := pathOf(string(text))
	switch {
	case p == nil:
		return invalid.New(ErrInvalid, "prefix", "nil", "a pointer to a Prefix")
	case string(text) == allText:
		*p = AllEntities()
		return nil
	case !ok:
		return invalid.New(ErrInvalid, "prefix", invalid.Quote(string(text)), entityText)
	}
	*p = Prefix{path: path}
	return nil
}
