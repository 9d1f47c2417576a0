package lab

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/tidemark-go/tidemark/examples/internal/display"
)

// fileReader collects the mistakes of a file.
type fileReader struct{ mistakes []Mistake }

func (r *fileReader) mistake(at *yaml.Node, format string, args ...any) {
	m := Mistake{Text: fmt.Sprintf(format, args...)}
	if at != nil {
		m.Line, m.Column = at.Line, at.Column
	}
	r.mistakes = append(r.mistakes, m)
}

// object is a mapping of a file. The methods that read a field report mistakes to the reader, and return the default
// then.
type object struct {
	*fileReader
	node  *yaml.Node // nil for one that is not there
	path  string
	known []string
}

// object returns a mapping, or an empty one if the node is something else.
func (r *fileReader) object(node *yaml.Node, path string) *object {
	o := &object{fileReader: r, path: path}
	if node == nil {
		return o
	}
	if node.Kind != yaml.MappingNode {
		r.mistake(node, "%s is %s; want fields, each as name: value on its own line", cmpPath(path, "the file"), described(node))
		return o
	}
	o.node = node
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i].Value
		if line, ok := seen[name]; ok {
			r.mistake(node.Content[i], "%s is there twice; the first is on line %d", o.name(name), line)
		}
		seen[name] = node.Content[i].Line
	}
	return o
}

func cmpPath(path, otherwise string) string {
	if path == "" {
		return otherwise
	}
	return path
}

func described(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a group of fields"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Tag == "!!null":
		return "empty"
	}
	return quote(n.Value)
}

func quote(text string) string {
	if len(text) > 64 {
		text = text[:64] + "…"
	}
	return fmt.Sprintf("%q", text)
}

// name returns a field with its place in the file.
func (o *object) name(field string) string {
	if o.path == "" {
		return field
	}
	return o.path + "." + field
}

// field returns the value of a field, or nil if it is not there.
func (o *object) field(name string) *yaml.Node {
	o.known = append(o.known, name)
	if o.node == nil {
		return nil
	}
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		if o.node.Content[i].Value == name {
			return o.node.Content[i+1]
		}
	}
	return nil
}

// text returns a field of text, and where it is.
func (o *object) text(name string) (string, *yaml.Node) {
	n := o.field(name)
	if n == nil {
		return "", nil
	}
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		o.mistake(n, "%s is %s; want a value", o.name(name), described(n))
		return "", nil
	}
	return n.Value, n
}

// printable reports a text with bytes that a terminal obeys.
func (o *object) printable(name, text string, at *yaml.Node) {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		o.mistake(at, "%s is %s; want printable text on one line", o.name(name), quote(text))
	}
}

// require reports that a field is missing.
func (o *object) require(name, want string) {
	if o.field(name) == nil && o.node != nil {
		o.mistake(o.node, "%s is missing; want %s", o.name(name), want)
	}
}

// value reads a field with a parser and checks its bounds.
func value[T int | int64 | float64](o *object, name string, otherwise, least, most T, parse func(string) (T, error), show func(T) string) T {
	text, at := o.text(name)
	if at == nil {
		return otherwise
	}
	v, err := parse(text)
	if err != nil {
		o.mistake(at, "%s is %s; want %v", o.name(name), quote(text), err)
		return otherwise
	}
	if v < least || v > most {
		o.mistake(at, "%s is %s; want %s to %s", o.name(name), quote(text), show(least), show(most))
		return otherwise
	}
	return v
}

// done reports the fields that were not asked for.
func (o *object) done() {
	if o.node == nil {
		return
	}
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		name := o.node.Content[i]
		if slices.Contains(o.known, name.Value) {
			continue
		}
		text := fmt.Sprintf("%s is not a field", o.name(name.Value))
		if near := display.Nearest(name.Value, o.known); near != "" {
			text += fmt.Sprintf("; did you mean %s?", near)
		}
		o.mistake(name, "%s; want %s", text, strings.Join(slices.Compact(slices.Sorted(slices.Values(o.known))), ", "))
	}
}

// items returns the elements of a list.
func (o *object) items(name string, most int) []*yaml.Node {
	n := o.field(name)
	switch {
	case n == nil:
		return nil
	case n.Kind != yaml.SequenceNode:
		o.mistake(n, "%s is %s; want a list, each item on a line that begins with -", o.name(name), described(n))
		return nil
	case len(n.Content) > most:
		o.mistake(n, "%s has %d items; want at most %d", o.name(name), len(n.Content), most)
		return n.Content[:most]
	}
	return n.Content
}
