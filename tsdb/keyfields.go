package tsdb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// KeyFields are the fields that identify an entity, in the order in which they stand in row keys: from the one by which
// entities lie together to the one that tells them apart. Each has a name and a kind, which decides what values it takes and
// how they are stored. Make them with Key, and add fields of other kinds than text with its methods:
//
//	tsdb.Key("line").Uint("stop", 5).Int("level", 2)
//
// Schema.Entity makes entities of Go values, and Schema.Scan reads them back. NewEntity takes parts as they are stored; every
// call refuses a part that its field's kind does not write, with ErrInvalid, before anything is sent. Kinds are part of the
// stored format, and of the catalogue.
//
// Methods return new KeyFields and leave the old ones as they are. Mistakes are reported by Define.
type KeyFields struct {
	names []string
	kinds []rowkey.FieldKind // as many as names
}

// Key returns fields of text with those names: 1 to 8 with those that are added, each of 1 to 64 bytes, no two the same. Names are
// not stored in row keys, and can be as long as is clear. Text is any valid UTF-8 of at least one byte, and its Go type is string.
func Key(names ...string) KeyFields { return KeyFields{}.Text(names...) }

// Text adds fields of text, as Key does.
func (k KeyFields) Text(names ...string) KeyFields {
	for _, name := range names {
		k = k.with(name, rowkey.FieldKind{})
	}
	return k
}

// Uint adds a field of whole numbers of up to 1 to 20 digits, whose Go types are the integers. Numbers are stored with
// leading zeros, as PadUint writes them, so that entities stand in the order of their numbers. A number below 0, or with more
// digits, is refused.
func (k KeyFields) Uint(name string, digits int) KeyFields { return k.with(name, rowkey.Uint(digits)) }

// Int adds a field of whole numbers with a sign, of up to 1 to 19 digits, whose Go types are the integers. They are stored as p
// and their digits with leading zeros; negative ones as n and the difference of their digits to nines: of three digits, 7
// is p007 and -7 is n992. So entities stand in the order of their numbers.
func (k KeyFields) Int(name string, digits int) KeyFields { return k.with(name, rowkey.Int(digits)) }

// ReversedID adds a field of ids that are handed out one after the other, from 0 to the greatest uint64, whose Go types are the
// integers. They are stored as ReverseDigits writes them: new ones, often the busiest, then lie apart. Their order is lost.
func (k KeyFields) ReversedID(name string) KeyFields { return k.with(name, rowkey.ReversedID) }

// ReversedDomain adds a field of domain names, whose Go type is string: up to 253 bytes of a-z 0-9 - _ in labels of up to 63, with
// dots between them. They are stored with their labels in reverse, as ReverseLabels writes them, so that the names of one
// domain lie together.
func (k KeyFields) ReversedDomain(name string) KeyFields { return k.with(name, rowkey.ReversedDomain) }

// UUID adds a field of UUIDs of any version, whose Go types are arrays of 16 bytes. They are stored in their usual text with
// letters in lower case, and stand in the order of their bytes.
func (k KeyFields) UUID(name string) KeyFields { return k.with(name, rowkey.UUID) }

func (k KeyFields) with(name string, kind rowkey.FieldKind) KeyFields {
	return KeyFields{names: append(slices.Clip(k.names), name), kinds: append(slices.Clip(k.kinds), kind)}
}

// Entity returns the entity with those values, one for each key field in its order: each of a Go type of the field's kind, as
// the methods of KeyFields name them, or the value's usual text, such as "-7". So a program that has text alone, from a
// command line say, can pass it for all kinds. A wrong number of values, and a value that its field does not take, are refused
// with ErrInvalid, and the error names the field, the value and what is allowed. It does no I/O, and some small allocations.
func (s *Schema[T]) Entity(values ...any) (Entity, error) { return entityOf(s.shape(), values) }

// Prefix returns the prefix with those values of the first key fields, fewer than there are, as Entity takes them. Without
// values it is AllEntities.
func (s *Schema[T]) Prefix(values ...any) (Prefix, error) { return prefixOf(s.shape(), values) }

// Scan stores the values of an entity's key fields in what into points to, one pointer for each field in its order: to a Go type of
// the field's kind that can hold the value, to a string for the value's usual text, or to an interface for a string (text and
// domains), uint64 (Uint and ReversedID), int64 (Int) or [16]byte (UUID). Errors match ErrInvalid, and name the field; what comes
// before it is stored. An entity that was stored by a program which knows no kinds may have parts that do not fit.
func (s *Schema[T]) Scan(e Entity, into ...any) error { return scanEntity(s.shape(), e, into) }

// entityOf returns the entity with one value for each key field.
func entityOf(d *dataset.Dataset, values []any) (Entity, error) {
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

// prefixOf returns the prefix with values for the first key fields.
func prefixOf(d *dataset.Dataset, values []any) (Prefix, error) {
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

// scanEntity stores the values of an entity's key fields in what into points to.
func scanEntity(d *dataset.Dataset, e Entity, into []any) error {
	if d == nil {
		return errNoSchema()
	}
	if err := d.CheckCount(len(into), "targets"); err != nil {
		return err
	}
	parts := e.Parts()
	if len(parts) != len(d.Fields) {
		return invalid.New(ErrInvalid, "entity", invalid.Quote(e.String()), fmt.Sprintf("one of dataset %s, with a part for each key field (%s)", d.Name, strings.Join(d.Fields, ", ")))
	}
	for i, part := range parts {
		if err := d.Kinds[i].Scan(d.Fields[i], part, into[i]); err != nil {
			return err
		}
	}
	return nil
}

func errNoSchema() error { return invalid.New(ErrInvalid, "schema", "zero", "one from Define") }
