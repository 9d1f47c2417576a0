package tsdb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// KeyFields are the fields that identify an entity, in the order of row keys: most significant first. Entities that
// share leading fields are stored next to each other. Each field has a name and a kind, which decides its values and
// how they are stored. Key makes text fields; methods add fields of other kinds:
//
//	tsdb.Key("line").Uint("stop", 5).Int("level", 2)
//
// Schema.Entity makes entities from Go values, and Schema.Scan reads them back. NewEntity takes parts in their stored
// form; every call refuses a part that does not fit its field's kind, with ErrInvalid, before anything is sent. Kinds
// are part of the stored format and of the catalogue.
//
// Methods return new KeyFields and do not change the receiver. Define reports mistakes.
type KeyFields struct {
	names []string
	kinds []rowkey.FieldKind // one per name
}

// Key returns text fields with these names. A schema has 1 to 8 fields in total, with distinct names of 1 to 64 bytes.
// Names are not stored in row keys, so they can be long. Text is valid UTF-8 of at least one byte; its Go type is
// string.
func Key(names ...string) KeyFields { return KeyFields{}.Text(names...) }

// Text adds text fields, as Key does.
func (k KeyFields) Text(names ...string) KeyFields {
	for _, name := range names {
		k = k.with(name, rowkey.FieldKind{})
	}
	return k
}

// Uint adds a field of unsigned whole numbers with at most digits digits, 1 to 20. Its Go types are the integers.
// Numbers are stored with leading zeros, so entities sort by number. Negative and longer numbers are refused.
func (k KeyFields) Uint(name string, digits int) KeyFields { return k.with(name, rowkey.Uint(digits)) }

// Int adds a field of signed whole numbers with at most digits digits, 1 to 19. Its Go types are the integers. Entities
// sort by number: a number is stored as p and its digits with leading zeros, a negative one as n and the nines'
// complement of its digits. With three digits, 7 is p007 and -7 is n992.
func (k KeyFields) Int(name string, digits int) KeyFields { return k.with(name, rowkey.Int(digits)) }

// ReversedID adds a field of sequential IDs from 0 to the largest uint64. Its Go types are the integers. IDs are stored
// as their 20 digits in reverse, so new IDs, often the busiest, are spread over the table. Their order is lost.
func (k KeyFields) ReversedID(name string) KeyFields { return k.with(name, rowkey.ReversedID) }

// ReversedDomain adds a field of domain names: up to 253 bytes of a-z 0-9 - _ in labels of up to 63 bytes, separated by
// dots. Its Go type is string. Labels are stored in reverse order, so the names of one domain are stored next to each
// other.
func (k KeyFields) ReversedDomain(name string) KeyFields { return k.with(name, rowkey.ReversedDomain) }

// UUID adds a field of UUIDs of any version. Its Go types are arrays of 16 bytes. UUIDs are stored as lower-case text
// and sort by their bytes.
func (k KeyFields) UUID(name string) KeyFields { return k.with(name, rowkey.UUID) }

func (k KeyFields) with(name string, kind rowkey.FieldKind) KeyFields {
	return KeyFields{names: append(slices.Clip(k.names), name), kinds: append(slices.Clip(k.kinds), kind)}
}

// Entity returns the entity with these values, one per key field, in order. A value has a Go type of its field's kind
// (see KeyFields) or is its usual text, such as "-7", so programs that only have text can pass it for all kinds. A
// wrong number of values, or a value that does not fit its field, is refused with ErrInvalid. It does no I/O, and some
// small allocations.
func (s *Schema[T]) Entity(values ...any) (Entity, error) {
	d := s.shape()
	if d == nil {
		return Entity{}, errNoSchema()
	}
	if err := d.CheckCount(len(values), "values"); err != nil {
		return Entity{}, err
	}
	parts, err := d.Parts(values)
	if err != nil {
		return Entity{}, err
	}
	return NewEntity(parts...), nil
}

// Prefix returns the prefix with these values of the first key fields, fewer than the schema has. Values are those of
// Entity. Without values it returns AllEntities.
func (s *Schema[T]) Prefix(values ...any) (Prefix, error) {
	d := s.shape()
	switch {
	case d == nil:
		return Prefix{}, errNoSchema()
	case len(values) == 0:
		return AllEntities(), nil
	case len(values) >= len(d.Fields):
		return Prefix{}, invalid.New(ErrInvalid, "prefix", fmt.Sprintf("%d values", len(values)),
			fmt.Sprintf("fewer than the %d key fields (%s)", len(d.Fields), strings.Join(d.Fields, ", ")))
	}
	parts, err := d.Parts(values)
	if err != nil {
		return Prefix{}, err
	}
	return NewPrefix(parts...), nil
}

// Scan stores the values of an entity's key fields in the pointers of into, one per field, in order. A pointer is to a
// Go type that can hold the value, to a string for its usual text, or to an interface, which gets a string (text and
// domains), uint64 (Uint and ReversedID), int64 (Int) or [16]byte (UUID). Errors match ErrInvalid and name the field;
// the fields before it are stored. Entities written by a program that did not declare kinds may have parts that do not
// fit.
func (s *Schema[T]) Scan(e Entity, into ...any) error {
	d := s.shape()
	if d == nil {
		return errNoSchema()
	}
	if err := d.CheckCount(len(into), "targets"); err != nil {
		return err
	}
	parts := e.Parts()
	if len(parts) != len(d.Fields) {
		return invalid.New(ErrInvalid, "entity", invalid.Quote(e.String()), fmt.Sprintf("an entity of dataset %s, with one part for each key field (%s)", d.Name, strings.Join(d.Fields, ", ")))
	}
	for i, part := range parts {
		if err := d.Kinds[i].Scan(d.Fields[i], part, into[i]); err != nil {
			return err
		}
	}
	return nil
}

func errNoSchema() error {
	return invalid.New(ErrInvalid, "schema", "the zero value", "a schema from Define")
}
