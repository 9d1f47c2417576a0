package fields

import (
	"encoding/json"
)

// splitJSON reads text that package json accepts, so it checks only what it relies on.
func splitJSON(shape *Shape, payload []byte, visit func(string, []byte)) error {
	s := scanner{src: payload}
	if s.peek() != '{' {
		raw, err := s.value()
		if err == nil && (shape == nil || IsNull(JSON, raw)) {
			visitValue(shape, "", raw, visit)
		}
		return err
	}
	w := splitter{scanner: s, at: make(map[string]int), last: make(map[string]span)}
	if err := w.object(shape.top(), "", 0); err != nil {
		return err
	}
	for _, p := range w.parts {
		if p.Raw != nil {
			visit(p.Path, p.Raw)
		}
	}
	return nil
}

// visitValue visits a payload that is no object. Null in place of a struct is null for each of its fields.
func visitValue(shape *Shape, path string, raw []byte, visit func(string, []byte)) {
	if shape == nil {
		visit(path, raw)
		return
	}
	for i := range shape.Leaves {
		visit(shape.Leaves[i].Path, raw)
	}
}

// splitter collects the fields of a text. The last of equal names counts.
type splitter struct {
	scanner
	parts []Part // with nil for one that a later one replaced
	at    map[string]int
	last  map[string]span // the parts of the last value of a name, without a shape
}

// span is a part of a slice.
type span struct{ from, to int }

// object reads an object. With a node of a shape, only names of the node are fields.
func (w *splitter) object(of *node, path string, depth int) error {
	return w.members(func(quoted []byte) error {
		var name string
		if err := json.Unmarshal(quoted, &name); err != nil {
			return err
		}
		return w.field(of, path, name, depth)
	})
}

func (w *splitter) field(of *node, path, name string, depth int) error {
	var child *node
	if of != nil {
		if child = of.named(name); child == nil {
			_, err := w.value()
			return err
		}
		path = child.path
	} else {
		path = appendName(path, name, depth)
	}
	inner := child != nil && !child.leaf || of == nil && depth+1 < maxDepth
	from := len(w.parts)
	if inner && w.peek() == '{' {
		if of == nil {
			w.drop(path)
			defer func() { w.last[path] = span{from, len(w.parts)} }()
		}
		return w.object(child, path, depth+1)
	}
	raw, err := w.value()
	if err != nil {
		return err
	}
	if child != nil && !child.leaf { // null or another value in place of a struct
		child.each(func(leaf string) { w.set(leaf, []byte("null")) })
		return nil
	}
	if of == nil {
		w.drop(path)
		w.last[path] = span{from, from + 1}
	}
	w.set(path, raw)
	return nil
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

// scanner reads JSON text that is known to be valid, and never beyond its end.
type scanner struct {
	src []byte
	pos int
}

// peek returns the next byte that is no space, or 0.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.src); s.pos++ {
		if c := s.src[s.pos]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// members reads an object. At each member it calls visit with the name in its quotes; visit reads the value.
func (s *scanner) members(visit func(quoted []byte) error) error {
	s.pos++ // the brace
	for first := true; ; first = false {
		switch c := s.peek(); {
		case c == '}':
			s.pos++
			return nil
		case c == ',' && !first:
			s.pos++
		case !first:
			return errCut
		}
		quoted, err := s.name()
		if err == nil {
			err = visit(quoted)
		}
		if err != nil {
			return err
		}
	}
}

// name passes a name and the colon after it, and returns the name in its quotes.
func (s *scanner) name() ([]byte, error) {
	if s.peek() != '"' {
		return nil, errCut
	}
	quoted, err := s.value()
	if err != nil || s.peek() != ':' {
		return nil, errCut
	}
	s.pos++
	return quoted, nil
}

// value passes a value and returns its text.
func (s *scanner) value() ([]byte, error) {
	c := s.peek()
	from, depth := s.pos, 0
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case '"':
			if !s.text() {
				return nil, errCut
			}
			s.pos--
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return s.scalar(from)
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.scalar(from)
			}
		}
		s.pos++
		if depth == 0 && (c == '"' || c == '{' || c == '[') {
			return s.src[from:s.pos], nil
		}
	}
	if depth != 0 {
		return nil, errCut
	}
	return s.scalar(from)
}

// scalar returns a number, true, false or null that ends here.
func (s *scanner) scalar(from int) ([]byte, error) {
	if s.pos == from {
		return nil, errCut
	}
	return s.src[from:s.pos], nil
}

// text passes a text with its quotes.
func (s *scanner) text() bool {
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			s.pos++
		case '"':
			s.pos++
			return true
		}
	}
	s.pos = len(s.src)
	return false
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
