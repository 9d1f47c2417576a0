package rollup

import (
	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Measures that are declared by a field are read from payloads, as programs without the Go type read them.

// setFields sets how the fields of measures are read.
func (l *level[T]) setFields() {
	for i := range l.measures {
		if m := &l.measures[i]; m.Field != "" && !m.unknown {
			l.fields.of = append(l.fields.of, fieldOf{i, l.in.Numbers[m.Field]})
		} else if !m.unknown {
			l.fields.values = true
		}
	}
}

// fields are the measures of a level that are fields of payloads.
type fields struct {
	of     []fieldOf
	values bool // other measures are functions, which need the values
}

// fieldOf is how one measure is read from payloads, by their tags.
type fieldOf struct {
	measure int
	read    []func(payload []byte) (codec.Value, error)
}

// payload is the payload of a point.
type payload struct {
	read bool // the point has a payload of a known tag
	tag  int
	data []byte
}

// tapped returns the repository whose points also come as payloads, if fields are read from them.
func (l *level[T]) tapped(p *payload) *tsdb.Repository[T] {
	if l.fields.of == nil {
		return l.repo
	}
	return inside.Of(l.repo).Tap(func(tag int, data []byte) { *p = payload{true, tag, data} }, l.fields.values)
}

// take sets the numbers of a point, one for each measure. It returns false if the point cannot be read. decoded says
// that v is its value.
func (l *level[T]) take(numbers []rollupadd.Number, p *payload, v T, decoded bool) bool {
	clear(numbers)
	if l.fields.of == nil && !decoded || l.fields.of != nil && !p.read {
		return false
	}
	p.read = false
	for _, f := range l.fields.of {
		x, err := f.read[p.tag](p.data)
		if err != nil {
			return false
		}
		n := &numbers[f.measure]
		n.Value, n.Has = l.measures[f.measure].scaledField(x)
	}
	for i := range l.measures {
		if m := &l.measures[i]; m.Field == "" && !m.unknown && decoded {
			numbers[i].Value, numbers[i].Has = m.scaled(v)
		}
	}
	return true
}
