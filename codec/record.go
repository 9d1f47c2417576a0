package codec

import (
	"iter"
	"slices"
	"strings"
)

// Field is one named value of a [Record]. The zero Field has no name and no value, and cannot be stored.
type Field struct {
	// Name is 1 to [MaxFieldName] bytes of UTF-8.
	Name string
	// Value is the field's value.
	Value Value
}

// Record is a set of named values, for data whose fields are known only when it arrives. Its names are unique, and
// its fields are in the order of their names, compared as bytes.
//
// A Record never changes: With and Merge return another one. So it may be copied, kept and shared between
// goroutines. The zero Record has no fields and is ready to use. Names and values are checked when the record is
// stored: see [Records].
type Record struct {
	fields []Field // by name, strictly ascending; never written to after construction
}

// NewRecord returns a record with the fields. If a name is repeated, the last value counts. It copies the slice: one
// allocation, and a sort if the names are not in order.
func NewRecord(fields ...Field) Record {
	if len(fields) == 0 {
		return Record{}
	}
	own := slices.Clone(fields)
	for i := 1; i < len(own); i++ {
		if own[i-1].Name >= own[i].Name {
			return Record{fields: sortFields(own)}
		}
	}
	return Record{fields: own}
}

// sortFields sorts in place and keeps the last field of each name.
func sortFields(fields []Field) []Field {
	slices.SortStableFunc(fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	kept := fields[:1]
	for _, f := range fields[1:] {
		if last := &kept[len(kept)-1]; last.Name == f.Name {
			*last = f
		} else {
			kept = append(kept, f)
		}
	}
	return kept
}

// Len returns the number of fields.
func (r Record) Len() int { return len(r.fields) }

// Lookup returns the value of a name, and whether the record has it. It is a binary search without allocation.
func (r Record) Lookup(name string) (Value, bool) {
	i, ok := r.find(name)
	if !ok {
		return Value{}, false
	}
	return r.fields[i].Value, true
}

// Number returns the number of a name as a float64, whatever kind of number it is: see [Value.Number]. ok is false if
// the record does not have the name, and for all that is no number. Like [Record.Int], [Record.Text] and [Record.Bool],
// it is Lookup and the method of [Value], and costs what Lookup does.
func (r Record) Number(name string) (f float64, ok bool) {
	v, _ := r.Lookup(name)
	return v.Number()
}

// Int returns the whole number of a name, whatever kind of number it is: see [Value.Int].
func (r Record) Int(name string) (i int64, ok bool) {
	v, _ := r.Lookup(name)
	return v.Int()
}

// Text returns the value of a name as plain text, also of a number or a bool: see [Value.Text].
func (r Record) Text(name string) (text string, ok bool) {
	v, _ := r.Lookup(name)
	return v.Text()
}

// Bool returns the truth value of a name: see [Value.Bool].
func (r Record) Bool(name string) (b, ok bool) {
	v, _ := r.Lookup(name)
	return v.Bool()
}

// All yields the names and values in the order of the names. It allocates nothing.
func (r Record) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, f := range r.fields {
			if !yield(f.Name, f.Value) {
				return
			}
		}
	}
}

// With returns r with the name set to v. It copies r; to build a record of many fields use [NewRecord].
func (r Record) With(name string, v Value) Record {
	i, ok := r.find(name)
	if ok {
		fields := slices.Clone(r.fields)
		fields[i].Value = v
		return Record{fields: fields}
	}
	fields := make([]Field, 0, len(r.fields)+1)
	fields = append(fields, r.fields[:i]...)
	fields = append(fields, Field{Name: name, Value: v})
	return Record{fields: append(fields, r.fields[i:]...)}
}

// Merge returns the fields of both records. If both have a name, the value of newer counts, whatever the kinds. So
// merging the same records again changes nothing. The time is proportional to the fields. It allocates once, or not
// at all if one of the records is empty.
func (r Record) Merge(newer Record) Record {
	if len(newer.fields) == 0 {
		return r
	}
	if len(r.fields) == 0 {
		return newer
	}
	a, b := r.fields, newer.fields
	out := make([]Field, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := strings.Compare(a[0].Name, b[0].Name); {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, b[0]), a[1:], b[1:]
		}
	}
	out = append(out, a...)
	return Record{fields: append(out, b...)}
}

// Equal reports whether both records have the same names with equal values: kind and bits, so a NaN equals itself.
// Two records are equal exactly if [Records] stores the same bytes for them. It allocates nothing.
func (r Record) Equal(other Record) bool { return slices.Equal(r.fields, other.fields) }

// String returns the record as text for people, in the order of the names: {door="open" temp=21.5}.
func (r Record) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range r.fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.Name)
		b.WriteByte('=')
		b.WriteString(f.Value.String())
	}
	b.WriteByte('}')
	return b.String()
}

func (r Record) find(name string) (int, bool) {
	return slices.BinarySearchFunc(r.fields, name, func(f Field, name string) int {
		return strings.Compare(f.Name, name)
	})
}
