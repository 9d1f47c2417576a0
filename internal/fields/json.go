package fields

import (
	"encoding/json"

	"github.com/tidemark-go/tidemark/internal/jsonscan"
)

// splitJSON checks the text as package json does. Null in place of a struct is null for each of its fields.
func splitJSON(shape *Shape, payload []byte, visit func(string, []byte)) error {
	s := jsonscan.Scanner{Src: payload}
	if s.Next() != '{' {
		if raw := s.Value(); shape == nil && raw != nil {
			visit("", raw)
		} else if shape != nil && IsNull(JSON, raw) {
			for i := range shape.Leaves {
				visit(shape.Leaves[i].Path, raw)
			}
		}
		return s.Err
	}
	w := splitter{Scanner: s, at: make(map[string]int), last: make(map[string]span)}
	w.object(shape.top(), "", 0)
	if w.Err != nil {
		return w.Err
	}
	for _, p := range w.parts {
		if p.Raw != nil {
			visit(p.Path, p.Raw)
		}
	}
	return nil
}

// splitter collects the fields of a text. The last of equal names counts.
type splitter struct {
	jsonscan.Scanner
	parts []Part // with nil for one that a later one replaced
	at    map[string]int
	last  map[string]span // the parts of the last value of a name, without a shape
}

// span is a part of a slice.
type span struct{ from, to int }

// object reads an object. With a node of a shape, only names of the node are fields.
func (w *splitter) object(of *node, path string, depth int) {
	for more := w.Open('}'); more; more = w.More('}') {
		w.field(of, path, w.Name().Decode(), depth)
	}
}

func (w *splitter) field(of *node, path, name string, depth int) {
	var child *node
	if of != nil {
		if child = of.named(name); child == nil {
			w.Value()
			return
		}
		path = child.path
	} else {
		path = appendName(path, name, depth)
	}
	inner := child != nil && !child.leaf || of == nil && depth+1 < maxDepth
	from := len(w.parts)
	if inner && w.Next() == '{' {
		if of == nil {
			w.drop(path)
		}
		if w.object(child, path, depth+1); of == nil {
			w.last[path] = span{from, len(w.parts)}
		}
		return
	}
	raw := w.Value()
	if child != nil && !child.leaf { // null or another value in place of a struct
		child.each(func(leaf string) { w.set(leaf, []byte("null")) })
		return
	}
	if of == nil {
		w.drop(path)
		w.last[path] = span{from, from + 1}
	}
	w.set(path, raw)
}

func (w *splitter) set(path string, raw []byte) {
	if i, ok := w.at[path]; ok {
		w.parts[i].Raw = raw
		return
	}
	w.at[path] = len(w.parts)
	w.parts = append(w.parts, Part{path, raw})
}

// drop drops the fields of the value that a name had before in the same text. All drops together take as long as the
// text has fields.
func (w *splitter) drop(path string) {
	s := w.last[path]
	for i := s.from; i < s.to; i++ {
		if w.parts[i].Raw != nil {
			delete(w.at, w.parts[i].Path)
			w.parts[i].Raw = nil
		}
	}
}

// object is an object that is being joined.
type object struct {
	names []string
	of    map[string]*member
}

// member is a value or an object.
type member struct {
	raw   []byte
	inner *object
}

func joinJSON(parts []Part) ([]byte, error) {
	root, whole := &object{}, []byte(nil)
	for _, p := range parts {
		if p.Path == "" {
			root, whole = &object{}, p.Raw
			continue
		}
		whole = nil
		root.set(Names(p.Path), p.Raw)
	}
	if whole != nil {
		return whole, nil
	}
	return root.append(nil)
}

// set adds a value. It replaces an older one on its way, and older ones below it.
func (o *object) set(names []string, raw []byte) {
	m := o.of[names[0]]
	if m == nil {
		if o.of == nil {
			o.of = make(map[string]*member)
		}
		m = &member{}
		o.of[names[0]] = m
		o.names = append(o.names, names[0])
	}
	if len(names) == 1 {
		*m = member{raw: raw}
		return
	}
	if m.inner == nil {
		*m = member{inner: &object{}}
	}
	m.inner.set(names[1:], raw)
}

func (o *object) append(dst []byte) ([]byte, error) {
	dst = append(dst, '{')
	for i, name := range o.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		text, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		dst = append(append(dst, text...), ':')
		m := o.of[name]
		if m.inner == nil {
			dst = append(dst, m.raw...)
		} else if dst, err = m.inner.append(dst); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}
