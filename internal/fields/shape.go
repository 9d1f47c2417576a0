package fields

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tidemark-go/tidemark/codec"
)

// MaxLeaves is the largest number of fields of a shape. A type with more has only fields of its outer levels, whole.
const MaxLeaves = 1000

// Shape is the fixed list of the fields of a type. Nil is for payloads that each have their own. It is immutable.
type Shape struct {
	Leaves []Leaf
	Typed  bool // the type says the kinds of all leaves
	root   *node
	at     map[string]int // in Leaves, by path
}

// Leaf is a field of a shape.
type Leaf struct {
	Path string `json:"path"`
	// Name is the names of the messages or objects around the field and its own, joined by dots.
	Name string `json:"name"`
	// Kind is the name of a codec.Kind; empty if only a payload says it.
	Kind string `json:"kind,omitempty"`
	// Always says that a protobuf message has the field even if it is not on the wire: it then has its default.
	Always bool `json:"always,omitempty"`
	// Wire is the wire type of a field of protobuf. A field with another one is unknown, but a list may be packed.
	Wire int8 `json:"wire,omitempty"`
	// Oneofs are the choices on the way to the field: fields of protobuf of which a message has one at most.
	Oneofs []Oneof `json:"oneofs,omitempty"`
}

// Oneof is a choice: the path of the message, a slash and the index of the oneof in it; and the field that is chosen.
type Oneof struct {
	In    string `json:"in"`
	Field int32  `json:"field"`
}

// node is a name in the tree of a shape.
type node struct {
	path         string
	oneof        string // the choice that it belongs to
	leaf, always bool
	wire         protowire.Type
	packed       bool
	children     []*node // of an object or a message
	byName       map[string]*node
	number       protowire.Number
	numbered     map[protowire.Number]*node
}

// Whole returns the shape of payloads that are one field.
func Whole() *Shape { return OfLeaves([]Leaf{{}}) }

// top returns the root, or nil without a shape.
func (s *Shape) top() *node {
	if s == nil {
		return nil
	}
	return s.root
}

// Missing returns the names of the leaves that are not in found, and that nothing found excludes, in their order.
func (s *Shape) Missing(found *Newest) (names []string) {
	if s == nil {
		return nil
	}
	for i := range s.Leaves {
		if l := &s.Leaves[i]; !found.Has(l.Path) && !found.hidden(l.Path, l) {
			names = append(names, l.Name)
		}
	}
	return names
}

// Whole reports whether a payload is one field.
func (s *Shape) Whole() bool { return s != nil && len(s.Leaves) == 1 && s.Leaves[0].Path == "" }

// Leaf returns the leaf of a path, or nil.
func (s *Shape) Leaf(path string) *Leaf {
	if s == nil {
		return nil
	}
	i, ok := s.at[path]
	if !ok {
		return nil
	}
	return &s.Leaves[i]
}

// Name returns the dotted name of a path. The shape may be nil, except for protobuf.
func (s *Shape) Name(path string) string {
	if l := s.Leaf(path); l != nil {
		return l.Name
	}
	if plain(path) {
		return path
	}
	return strings.Join(Names(path), ".")
}

// MarshalJSON returns the leaves.
func (s *Shape) MarshalJSON() ([]byte, error) { return json.Marshal(s.Leaves) }

var errShape = errors.New("fields: a shape has 1,000 fields at most, with different paths, none within another")

// UnmarshalJSON reads the leaves and checks them.
func (s *Shape) UnmarshalJSON(text []byte) error {
	var leaves []Leaf
	if err := json.Unmarshal(text, &leaves); err != nil {
		return err
	}
	of := OfLeaves(leaves)
	if of == nil {
		return errShape
	}
	*s = *of
	return nil
}

// OfLeaves returns the shape of leaves, or nil if there is none: with too many of them, or one within another.
func OfLeaves(leaves []Leaf) *Shape {
	s := &Shape{Leaves: leaves, Typed: true, root: &node{}}
	if len(leaves) > MaxLeaves {
		return nil
	}
	for i := range leaves {
		s.Typed = s.Typed && leaves[i].KindOf() != codec.KindInvalid
	}
	if s.at = make(map[string]int, len(leaves)); s.Whole() {
		s.at[""] = 0
		return s
	}
	for i := range leaves {
		s.at[leaves[i].Path] = i
		if !s.root.add(&leaves[i]) {
			return nil
		}
	}
	return s
}

// KindOf returns the kind of the leaf, or KindInvalid if only a payload says it.
func (l *Leaf) KindOf() codec.Kind { return KindNamed(l.Kind) }

// add adds a leaf below the root. It returns false if there is a leaf on its way or below it.
func (n *node) add(l *Leaf) bool {
	path := ""
	if l.Path == "" {
		return false
	}
	for i, part := range strings.Split(l.Path, "#") {
		if n.leaf {
			return false
		}
		in := path
		if i > 0 {
			path += "#"
		}
		path += part
		name := Names(path)[i]
		if n.byName[name] == nil {
			n.addChild(&node{path: path, oneof: l.choice(in), wire: protowire.BytesType}, name)
		}
		n = n.byName[name]
	}
	if n.leaf || n.children != nil {
		return false
	}
	n.leaf, n.always, n.wire, n.packed = true, l.Always, protowire.Type(l.Wire), l.Kind == "list"
	return true
}

// choice returns the choice on the way to the leaf that the message with a path has; empty for none.
func (l *Leaf) choice(in string) string {
	for _, o := range l.Oneofs {
		if o.In[:max(strings.LastIndexByte(o.In, '/'), 0)] == in {
			return o.In
		}
	}
	return ""
}

func (n *node) addChild(child *node, name string) {
	if n.byName == nil {
		n.byName, n.numbered = make(map[string]*node), make(map[protowire.Number]*node)
	}
	if number, err := strconv.ParseInt(name, 10, 32); err == nil {
		child.number = protowire.Number(number)
		n.numbered[child.number] = child
	}
	n.byName[name] = child
	n.children = append(n.children, child)
}

// named returns the child with a name as package json finds it: without one with just this name, the first one whose
// name differs in case only.
func (n *node) named(name string) *node {
	if c := n.byName[name]; c != nil {
		return c
	}
	for _, c := range n.children {
		if names := Names(c.path); strings.EqualFold(names[len(names)-1], name) {
			return c
		}
	}
	return nil
}

// each calls do with the path of each leaf.
func (n *node) each(do func(path string)) {
	if n.leaf {
		do(n.path)
	}
	for _, c := range n.children {
		c.each(do)
	}
}
