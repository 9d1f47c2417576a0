package fieldlist

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/codec"
)

// maxNames is how many objects may be within each other for their fields to be listed, as in package dynamic.
const maxNames = 16

// walker visits the names and kinds of the fields of payloads. It allocates only for names with escapes.
type walker struct {
	visit func(name []byte, k codec.Kind)
	src   []byte
	at    int
	depth int
	path  []byte // of the field that it is in
}

// walk visits the fields of a payload with a tag. It stops where the payload is damaged.
func (w *walker) walk(tag string, payload []byte) {
	w.src, w.at, w.depth, w.path = payload, 0, 0, w.path[:0]
	switch tag {
	case tagJSON:
		w.value()
	case tagRecord:
		w.record()
	}
	w.src = nil
}

var tagJSON, tagRecord = codec.JSON[any]().Tag(), codec.Records().Tag()

// record visits the fields of a record.
func (w *walker) record() {
	for n := w.uvarint(); n > 0 && w.at < len(w.src); n-- {
		name := w.bytes(uint64(w.byte()))
		k, size := codec.KindInvalid, uint64(0)
		switch w.byte() {
		case 'f':
			k, size = codec.KindFloat, 8
		case 'i':
			k = codec.KindInt
			w.uvarint()
		case 'u':
			k = codec.KindUint
			w.uvarint()
		case 's':
			k = codec.KindStr
			size = w.uvarint()
		case 'T', 'F':
			k = codec.KindBool
		}
		w.bytes(size)
		if k == codec.KindInvalid || w.at > len(w.src) {
			return
		}
		w.visit(name, k)
	}
}

// byte, bytes and uvarint read on. Behind the end of the payload, at is greater than its length.
func (w *walker) byte() byte {
	if w.at++; w.at > len(w.src) {
		return 0
	}
	return w.src[w.at-1]
}

func (w *walker) bytes(n uint64) []byte {
	if w.at > len(w.src) || n > uint64(len(w.src)-w.at) {
		w.at = len(w.src) + 1
		return nil
	}
	w.at += int(n)
	return w.src[w.at-int(n) : w.at]
}

func (w *walker) uvarint() uint64 {
	if w.at > len(w.src) {
		return 0
	}
	u, n := binary.Uvarint(w.src[w.at:])
	if n <= 0 {
		n = len(w.src) + 1
	}
	w.at += n
	return u
}

// value visits the fields of a JSON value. It returns false at the end of what can be read.
func (w *walker) value() bool {
	from, k := w.space(), codec.KindInvalid
	switch c := w.peek(); c {
	case '{':
		if w.depth < maxNames {
			return w.object()
		}
		return w.skip()
	case '[':
		k = codec.KindList
		if !w.skip() {
			return false
		}
	case '"':
		k = codec.KindStr
		if !w.string() {
			return false
		}
	default:
		for w.at < len(w.src) && !ends(w.src[w.at]) {
			w.at++
		}
		k = scalar(w.src[from:w.at])
	}
	if k == codec.KindInvalid {
		return false
	}
	w.visit(w.path, k)
	return true
}

// ends reports whether a byte ends a number or a word.
func ends(c byte) bool {
	switch c {
	case ',', ']', '}', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// scalar returns the kind of a number or a word.
func scalar(text []byte) codec.Kind {
	if len(text) == 0 {
		return codec.KindInvalid
	}
	switch text[0] {
	case 't', 'f':
		return codec.KindBool
	case 'n':
		return codec.KindNull
	}
	if len(text) < 16 { // such an integer fits 64 bits
		for _, c := range text {
			if c == '.' || c == 'e' || c == 'E' {
				return codec.KindFloat
			}
		}
		return codec.KindInt
	}
	v, _ := codec.ParseNumber(string(text))
	return v.Kind()
}

// object visits the fields of an object.
func (w *walker) object() bool {
	w.at++
	w.depth++
	defer func() { w.depth-- }()
	if w.space(); w.peek() == '}' {
		w.at++
		return true
	}
	outer := len(w.path)
	for {
		w.space()
		name, ok := w.text()
		if w.space(); !ok || w.peek() != ':' {
			return false
		}
		w.at++
		if w.depth > 1 {
			w.path = append(w.path, '.')
		}
		w.path = append(w.path, name...)
		ok = w.value()
		w.path = w.path[:outer]
		w.space()
		c := w.peek()
		w.at++
		if !ok || c != ',' {
			return ok && c == '}'
		}
	}
}

// text reads a string and returns its text.
func (w *walker) text() (text []byte, ok bool) {
	if w.peek() != '"' {
		return nil, false
	}
	from := w.at
	if !w.string() {
		return nil, false
	}
	text = w.src[from+1 : w.at-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return text, true
	}
	var s string
	err := json.Unmarshal(w.src[from:w.at], &s)
	return []byte(s), err == nil
}

// skip passes an array or an object.
func (w *walker) skip() bool {
	for depth := 0; w.at < len(w.src); {
		switch w.src[w.at] {
		case '"':
			if !w.string() {
				return false
			}
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if w.at++; depth == 0 {
			return true
		}
	}
	return false
}

// string passes a string.
func (w *walker) string() bool {
	for w.at++; w.at < len(w.src); w.at++ {
		switch w.src[w.at] {
		case '\\':
			w.at++
		case '"':
			w.at++
			return true
		}
	}
	return false
}

func (w *walker) space() (at int) {
	for w.at < len(w.src) && (w.src[w.at] == ' ' || w.src[w.at] == '\n' || w.src[w.at] == '\t' || w.src[w.at] == '\r') {
		w.at++
	}
	return w.at
}

func (w *walker) peek() byte {
	if w.at < len(w.src) {
		return w.src[w.at]
	}
	return 0
}

// valid reports whether a field can be listed under a name.
func valid(name []byte) bool { return len(name) <= MaxName && utf8.Valid(name) }
