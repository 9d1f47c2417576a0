// Package fields splits payloads into their fields and joins fields to a payload again, without decoding values.
//
// A field has a path: the names of the objects that it is in and its own, each escaped like a part of a row key, joined
// by '#'. A name in an object of JSON may be empty; it is '%' in a path. Fields of protobuf have numbers instead of
// names. A payload that is a single value is one field with the empty path.
package fields

import (
	"bytes"
	"errors"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// The formats whose payloads have several fields. A payload of any other format is one field.
const (
	JSON   = "json"
	Record = "rec"
	Proto  = "pb"

	// Codecs are the codecs of these formats.
	Codecs = "codec.JSON, codec.Proto or codec.Records"
)

// formats say how payloads of these formats are split and joined, and which kinds of fields they have.
var formats = map[string]struct {
	split func(shape *Shape, payload []byte, visit func(path string, raw []byte)) error
	join  func(parts []Part) ([]byte, error)
	kinds func(payload []byte, visit func(name []byte, k codec.Kind)) // nil if payloads do not have the names of fields
}{
	JSON:   {splitJSON, joinJSON, kindsOfJSON},
	Record: {splitRecord, joinRecord, kindsOfRecord},
	Proto:  {splitProto, joinProto, nil},
}

// Several reports whether payloads of a format have several fields.
func Several(format string) bool { return formats[format].split != nil }

// Named reports whether they also have the names of the fields.
func Named(format string) bool { return formats[format].kinds != nil }

// maxDepth is in how many objects within each other fields are split. Deeper objects are one field, whole.
const maxDepth = 16

var errCut = errors.New("fields: payload is damaged")

// Part is a field and its value in the bytes of its format. The bytes of a field of protobuf are a message that has
// only this field, with the messages around it; they are empty for a default.
type Part struct {
	Path string
	Raw  []byte
}

// Split calls visit for each field of a payload, once for each path. The payload must be one that its codec decodes;
// for another one Split may return an error. raw is part of the payload or is new memory, and never changes.
//
// With a shape it visits the fields of the shape only. Without, those that a JSON text or a record has; a message of
// protobuf is one field then. A null of JSON is visited: see [IsNull]. An empty object has no fields.
func Split(format string, shape *Shape, payload []byte, visit func(path string, raw []byte)) error {
	if shape.Whole() {
		visit("", payload)
		return nil
	}
	if f, several := formats[format]; several && (shape != nil || f.kinds != nil) {
		return f.split(shape, payload, visit)
	}
	visit("", payload)
	return nil
}

// Join returns a payload of the parts, which are sorted, the oldest first. Paths are distinct. If a path is a value and
// also that of an object around another part, the newer of both counts.
func Join(format string, parts []Part) ([]byte, error) {
	if len(parts) == 1 && parts[0].Path == "" {
		return parts[0].Raw, nil
	}
	if f, several := formats[format]; several {
		return f.join(parts)
	}
	if len(parts) == 0 {
		return nil, errCut
	}
	return parts[len(parts)-1].Raw, nil
}

// IsNull reports whether the value of a field is null.
func IsNull(format string, raw []byte) bool {
	return format == JSON && string(bytes.TrimSpace(raw)) == "null"
}

// appendName appends a name to the path of the object that it is in.
func appendName(path, name string, depth int) string {
	part := "%"
	if name != "" {
		part = rowkey.Path(name)
	}
	if depth == 0 {
		return part
	}
	return path + "#" + part
}

// plain reports whether a path is one name, as it is.
func plain(path string) bool { return path != "" && !strings.ContainsAny(path, "#%") }

// Names returns the names of a path of JSON or of a record.
func Names(path string) []string {
	switch {
	case path == "":
		return nil
	case plain(path):
		return []string{path}
	}
	names := rowkey.Parts(path)
	for i, part := range strings.Split(path, "#") {
		if part == "%" {
			names[i] = ""
		}
	}
	return names
}
