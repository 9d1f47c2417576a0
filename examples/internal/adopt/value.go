package adopt

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/codec"
)

// column is a mapped column of the foreign table.
type column struct {
	name string // of the record's field; empty if the column is the payload
	key  string // family:qualifier
	as   encoding
}

// encoding is how a cell holds its value.
type encoding uint8

const (
	asNumber  encoding = iota // decimal text, stored as a float64
	asInteger                 // decimal text, stored as an int64
	asFloat64                 // 8 bytes, most significant first
	asInt64                   // the same
	asText
	asBool
	asJSON
	asBytes
)

var encodings = []string{"number", "integer", "float64", "int64", "text", "bool", "json", "bytes"}

// payloadTags are the codecs of payloads that are one column.
var payloadTags = map[encoding]string{
	asNumber: codec.Float64().Tag(), asFloat64: codec.Float64().Tag(), asInteger: codec.Int64().Tag(), asInt64: codec.Int64().Tag(),
	asText: codec.String().Tag(), asJSON: codec.JSON[int]().Tag(), asBytes: codec.Bytes().Tag(),
}

func (m *Mapping) readColumns(f *file, r *mistakes) {
	single := f.Value != fileColumn{}
	m.single = single
	all := f.Fields
	switch {
	case single && len(all) > 0:
		r.add(f.Value.Column.line, "value and fields are both there; want value for one column that is the whole payload, or fields for a record of several")
		return
	case single:
		all = []fileColumn{f.Value}
	case len(all) == 0:
		r.add(0, "value or fields is missing; want the columns with the values, such as value: {column: d:json, as: json}")
		return
	case len(all) > maxFields:
		r.add(all[0].Column.line, "fields has %d items; want at most %d", len(all), maxFields)
		return
	}
	names, keys := map[string]bool{}, map[string]bool{}
	for _, c := range all {
		line := max(c.Column.line, c.As.line, c.Name.line)
		as := encoding(0)
		for as < encoding(len(encodings)) && encodings[as] != c.As.value {
			as++
		}
		name := c.Name.value
		switch family, _, ok := strings.Cut(c.Column.value, ":"); {
		case !ok || family == "":
			r.add(line, "column is %q; want family:qualifier", c.Column.value)
		case as == encoding(len(encodings)):
			r.add(line, "as is %q; want one of %s", c.As.value, strings.Join(encodings, ", "))
		case single && name != "":
			r.add(line, "value has the name %q; want none, or fields instead of value", name)
		case single && payloadTags[as] == "":
			r.add(line, "as is %q, which no payload can be; want fields instead of value, or another encoding", c.As.value)
		case !single && as != asJSON && name == "":
			r.add(line, "column %s has no name; want the name of its field, which only json may lack", c.Column.value)
		case len(name) > codec.MaxFieldName || !utf8.ValidString(name):
			r.add(line, "name is %q; want at most %d bytes of UTF-8", short(name), codec.MaxFieldName)
		case keys[c.Column.value]:
			r.add(line, "column %s is there twice", c.Column.value)
		case name != "" && names[name]:
			r.add(line, "name %s is there twice", name)
		}
		names[name], keys[c.Column.value] = true, true
		m.columns = append(m.columns, column{name: name, key: c.Column.value, as: as})
		if m.tag = codec.Records().Tag(); single {
			m.tag = payloadTags[as]
		}
	}
}

// column returns the index of a column, or -1.
func (m *Mapping) column(key string) int {
	for i := range m.columns {
		if m.columns[i].key == key {
			return i
		}
	}
	return -1
}

// cell is the value of a mapped column.
type cell struct {
	column int
	value  []byte
}

// payload returns the payload of a point, and what is wrong with its cells.
func (m *Mapping) payload(cells []cell) ([]byte, error) {
	if m.single {
		return m.columns[cells[0].column].as.payload(cells[0].value)
	}
	fields := make([]codec.Field, 0, len(cells))
	for _, c := range cells {
		col := &m.columns[c.column]
		var err error
		if fields, err = col.as.fields(fields, col.name, c.value); err != nil {
			return nil, fmt.Errorf("%s: %w", col.key, err)
		}
	}
	r := codec.NewRecord(fields...)
	if r.Len() != len(fields) {
		return nil, errors.New("two values have one name; name the columns in fields so that theirs differ")
	}
	if r.Len() == 0 {
		return nil, errors.New("no value: JSON without members")
	}
	return codec.Records().Append(nil, r)
}

// payload returns the payload of a point that is one cell.
func (e encoding) payload(v []byte) ([]byte, error) {
	if e == asJSON {
		if !json.Valid(v) || !utf8.Valid(v) {
			return nil, fmt.Errorf("%q; want JSON in UTF-8", sample(v))
		}
		return v, nil
	}
	if e == asBytes {
		return v, nil
	}
	x, err := e.value(v)
	if err != nil {
		return nil, err
	}
	if f, ok := x.Float(); ok {
		return codec.Float64().Append(nil, f)
	}
	if i, ok := x.Int(); ok {
		return codec.Int64().Append(nil, i)
	}
	text, _ := x.Str()
	return codec.String().Append(nil, text)
}

// fields appends the fields of a record that a cell holds: one, or for a JSON object one for each of its members.
func (e encoding) fields(to []codec.Field, name string, v []byte) ([]codec.Field, error) {
	if e == asJSON {
		if !json.Valid(v) || !utf8.Valid(v) || halfSurrogate(v) {
			return to, fmt.Errorf("%q; want JSON in UTF-8", sample(v))
		}
		d := json.NewDecoder(bytes.NewReader(v))
		d.UseNumber()
		return jsonFields(to, name, d)
	}
	x, err := e.value(v)
	if err != nil {
		return to, err
	}
	return append(to, codec.Field{Name: name, Value: x}), nil
}

// value returns a cell's value. Nothing is rounded that the encoding can keep.
func (e encoding) value(v []byte) (codec.Value, error) {
	switch e {
	case asNumber:
		return number(string(v))
	case asInteger:
		i, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return codec.Value{}, fmt.Errorf("%q; want a whole number of 64 bits as text", sample(v))
		}
		return codec.Int(i), nil
	case asFloat64, asInt64:
		if len(v) != 8 {
			return codec.Value{}, fmt.Errorf("%d bytes; want 8", len(v))
		}
		if bits := binary.BigEndian.Uint64(v); e == asInt64 {
			return codec.Int(int64(bits)), nil
		} else {
			return codec.Float(math.Float64frombits(bits)), nil
		}
	case asText:
		if !utf8.Valid(v) {
			return codec.Value{}, fmt.Errorf("%q; want UTF-8", sample(v))
		}
		return codec.Str(string(v)), nil
	case asBool:
		switch string(v) {
		case "true", "1", "\x01":
			return codec.Bool(true), nil
		case "false", "0", "\x00":
			return codec.Bool(false), nil
		}
		return codec.Value{}, fmt.Errorf("%q; want true, false, 1, 0, or one byte of 1 or 0", sample(v))
	}
	return codec.Str(base64.StdEncoding.EncodeToString(v)), nil // a record has no bytes
}

// number returns the float64 of a decimal text. Whole numbers beyond 2^53 must be exact.
func number(text string) (codec.Value, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "0123456789+-.eE") != "" {
		return codec.Value{}, fmt.Errorf("%q; want a decimal number as text", sample([]byte(text)))
	}
	if !strings.ContainsAny(text, ".eE") && math.Abs(f) >= 1<<53 && strconv.FormatFloat(f, 'f', -1, 64) != strings.TrimPrefix(text, "+") {
		return codec.Value{}, fmt.Errorf("%q is no float64; integer keeps it", sample([]byte(text)))
	}
	return codec.Float(f), nil
}

// jsonFields appends the fields of the next JSON value. Names of members are joined by dots; null is no field. Names
// and fields are bounded while they are read, as a record bounds them: those of nested objects could be many times as
// large as the text.
func jsonFields(to []codec.Field, name string, d *json.Decoder) (_ []codec.Field, err error) {
	token, err := d.Token()
	if err != nil {
		return to, err
	}
	var v codec.Value
	switch x := token.(type) {
	case nil:
		return to, nil
	case json.Delim:
		if x == '{' {
			return memberFields(to, name, d)
		}
		return to, fmt.Errorf("%s is an array; want value: {as: json} instead of fields, which keeps JSON as it is", memberTitle(name))
	case json.Number:
		if v, err = number(x.String()); err != nil {
			return to, fmt.Errorf("%s is %w", memberTitle(name), err)
		}
	case string:
		v = codec.Str(x)
	case bool:
		v = codec.Bool(x)
	}
	switch {
	case name == "":
		return to, errors.New("JSON that is no object; want a name for its column")
	case len(to) == codec.MaxFields:
		return to, fmt.Errorf("more than %d fields", codec.MaxFields)
	}
	return append(to, codec.Field{Name: name, Value: v}), nil
}

// memberFields appends the fields of the members of an object, of which the first token is read.
func memberFields(to []codec.Field, name string, d *json.Decoder) (_ []codec.Field, err error) {
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return to, err
		}
		member, _ := token.(string)
		switch {
		case member == "":
			return to, fmt.Errorf("%s has a member without a name", memberTitle(name))
		case seen[member]:
			return to, fmt.Errorf("%s has the member %q twice", memberTitle(name), short(member))
		}
		seen[member] = true
		if name != "" {
			member = name + "." + member
		}
		if len(member) > codec.MaxFieldName {
			return to, fmt.Errorf("%q is a name of %d bytes; want at most %d", short(member), len(member), codec.MaxFieldName)
		}
		if to, err = jsonFields(to, member, d); err != nil {
			return to, err
		}
	}
	_, err = d.Token() // the end of the object
	return to, err
}

// memberTitle names a value for messages.
func memberTitle(name string) string {
	if name == "" {
		return "the JSON"
	}
	return strconv.Quote(short(name))
}

// halfSurrogate reports whether valid JSON has an escape such as \ud800 that is no character, which a decoder replaces.
func halfSurrogate(v []byte) bool {
	escaped := func(at int) rune {
		if at+6 > len(v) || v[at] != '\\' || v[at+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(v[at+2:at+6]), 16, 16)
		return rune(n)
	}
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' {
			continue
		}
		c := escaped(i)
		switch {
		case !utf16.IsSurrogate(c):
			i++ // what is escaped
		case utf16.DecodeRune(c, escaped(i+6)) == utf8.RuneError:
			return true
		default:
			i += 11
		}
	}
	return false
}

// sample returns the start of a value, for messages.
func sample(v []byte) []byte { return v[:min(len(v), 32)] }
