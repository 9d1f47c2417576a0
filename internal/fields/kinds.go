package fields

import (
	"bytes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/jsonscan"
)

// Kinds calls visit for each field of a JSON text or a record, with its name and kind, and for no field of another
// format. The name is the names of the objects around the field and its own, joined by dots, and valid during the call.
// Fields of objects that are deeper than maxDepth are left out. Kinds stops where the payload is damaged. It allocates
// for names with escapes, and once for a text.
func Kinds(format string, payload []byte, visit func(name []byte, k codec.Kind)) {
	if of := formats[format].kinds; of != nil {
		of(payload, visit)
	}
}

func kindsOfJSON(payload []byte, visit func(name []byte, k codec.Kind)) {
	w := kinds{Scanner: jsonscan.Scanner{Src: payload}, visit: visit}
	w.value()
}

func kindsOfRecord(payload []byte, visit func(name []byte, k codec.Kind)) {
	_ = eachField(payload, func(name, value []byte) { visit(name, recordKinds[value[0]]) })
}

// KindNamed returns the kind of a name, or KindInvalid.
func KindNamed(name string) codec.Kind {
	for k := codec.KindFloat; k <= codec.KindList; k++ {
		if k.String() == name {
			return k
		}
	}
	return codec.KindInvalid
}

var recordKinds = [256]codec.Kind{'f': codec.KindFloat, 'i': codec.KindInt, 'u': codec.KindUint, 's': codec.KindStr, 'T': codec.KindBool, 'F': codec.KindBool}

// kinds visits the fields of a JSON text.
type kinds struct {
	jsonscan.Scanner
	visit func([]byte, codec.Kind)
	name  []byte // of the value at hand
	depth int
}

func (w *kinds) value() {
	if w.Next() == '{' && w.depth < maxDepth {
		w.depth++
		w.object()
		w.depth--
	} else if raw := w.Value(); raw != nil && raw[0] != '{' {
		w.visit(w.name, kindOf(raw))
	}
}

func (w *kinds) object() {
	outer := len(w.name)
	for more := w.Open('}'); more; more = w.More('}') {
		key := w.Name()
		if w.depth > 1 {
			w.name = append(w.name, '.')
		}
		if key.Verbatim() {
			w.name = append(w.name, key.Inside()...)
		} else {
			w.name = append(w.name, key.Decode()...)
		}
		w.value()
		w.name = w.name[:outer]
	}
}

// kindOf returns the kind of a value that is no object.
func kindOf(raw []byte) codec.Kind {
	switch raw[0] {
	case '[':
		return codec.KindList
	case '"':
		return codec.KindStr
	case 't', 'f':
		return codec.KindBool
	case 'n':
		return codec.KindNull
	}
	if bytes.ContainsAny(raw, ".eE") {
		return codec.KindFloat
	}
	if len(raw) < 19 { // such an integer has 64 bits
		return codec.KindInt
	}
	v, _ := codec.ParseNumber(string(raw))
	return v.Kind()
}
