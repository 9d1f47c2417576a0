package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/examples/internal/display"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func measureUsage(more string) string {
	return "the `field` of the payloads, as temp_c or motor.temp_c" + more + "; without a name where the payload is a number"
}

// measure is the numbers or states of one field of the payloads.
type measure struct {
	window.Measure[dynamic.Payload]
	*found
	names []string                    // of the aggregates that the flag names
	check func(dynamic.Payload) error // an error if the field is damaged
}

// found is what was read of a measure: a field that is misspelt has no values. It is safe for concurrent use, because
// groups read several entities at the same time.
type found struct {
	read   reader
	values atomic.Int64
	failed atomic.Int64                    // payloads in which the field cannot be read
	other  atomic.Pointer[dynamic.Payload] // the first payload without a value
}

func (f *found) note(p dynamic.Payload, v codec.Value) {
	if _, ok := v.Text(); ok {
		f.values.Add(1)
	} else if f.other.Load() == nil {
		p.Data = bytes.Clone(p.Data)
		f.other.CompareAndSwap(nil, &p)
	}
}

// measureOf returns the measure that a flag names: FIELD, or FIELD:KIND. Windows also take aggregates behind it, as
// measureWith does.
func (a *app) measureOf(text string) (measure, error) {
	m, err := a.measureWith(text)
	if err == nil && m.names != nil {
		err = usageError{fmt.Errorf("--measure %s: aggregates are for windows and groups; give FIELD or FIELD:KIND", text)}
	}
	return m, err
}

// measureWith returns the measure that a flag names with its kind, with aggregates that are joined by +, or with both:
// FIELD:mean+max, FIELD:counter:increase. Aggregates without a kind are of the first kind that has them.
func (a *app) measureWith(text string) (measure, error) {
	field, more, given := strings.Cut(text, ":")
	m := measure{found: new(found)}
	if given {
		kind, names, both := strings.Cut(more, ":")
		known := m.Kind.UnmarshalText([]byte(kind)) == nil
		switch {
		case both && !known:
			return m, usageError{fmt.Errorf("--measure %s: %q is not a kind; want gauge, counter or state", text, kind)}
		case !known:
			names = more
		}
		if names != "" || !known {
			m.names = strings.Split(names, "+")
		}
		for _, name := range m.names {
			if !slices.Contains(aggregate.Names(), name) {
				all := append([]string{"gauge", "counter", "state"}, aggregate.Names()...)
				return m, usageError{fmt.Errorf("--measure %s: %q is neither a kind nor an aggregate%s; want one of %s", text, name, didYouMean(name, all), strings.Join(all, ", "))}
			}
		}
		if !known {
			_, kept := aggregate.Named(m.names)
			for _, m.Kind = range []window.Kind{window.Gauge, window.Counter, window.State} {
				if _, err := m.Kind.Resolve(kept | window.Count); err == nil {
					break
				}
			}
		}
	}
	if m.Name = field; field == "" {
		m.Name = "value"
	}
	var err error
	if m.read, err = a.reader(); err != nil {
		return m, err
	}
	place, err := dynamic.NewField(field, m.read.options)
	if err != nil {
		return m, err
	}
	read := place.Number
	if m.Kind == window.State { // whatever the field is: a text, a number, a boolean
		read = place.Value
	}
	m.check = func(p dynamic.Payload) error {
		if _, err := read(p.Tag, p.Data); errors.Is(err, codec.ErrCorrupt) {
			return err
		}
		return nil // without its message, a payload of protobuf has no value
	}
	m.Value = func(p dynamic.Payload) codec.Value {
		v, err := read(p.Tag, p.Data)
		if errors.Is(err, codec.ErrCorrupt) {
			m.failed.Add(1)
		}
		m.note(p, v)
		return v
	}
	return m, nil
}

// measuresOf returns the measures that a flag names, each as measureOf does.
func (a *app) measuresOf(texts []string) (out []measure, err error) {
	for _, text := range texts {
		m, err := a.measureOf(text)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// missing returns an error where points were read and none of them has a value.
func (m *measure) missing(c *cli.Command, points int64) error {
	if points == 0 || m.values.Load() > 0 {
		return nil
	}
	return fmt.Errorf("%s; %q prints points", m.none(), "get "+strings.Join(c.Args().Slice()[:2], " "))
}

// sayMissing names the measures of a table that none of its points has.
func (a *app) sayMissing(measures []measure, points int64) {
	for i := range measures {
		if points > 0 && measures[i].values.Load() == 0 {
			a.say("%s%s", strings.ToUpper(measures[i].none()[:1]), measures[i].none()[1:])
		}
	}
}

// none says that no point has the measure, and what may be meant.
func (m *measure) none() string {
	what := "a number"
	if m.Kind == window.State {
		what = "a text, a number or a boolean"
	}
	return fmt.Sprintf("none of the points has %s in the field %q%s", what, m.Name, m.meant())
}

// shownFields is how many fields of a payload are named.
const shownFields = 10

// meant returns what may be meant by a field without values, by the fields of a payload.
func (m *measure) meant() string {
	p := m.other.Load()
	if p == nil {
		return ""
	}
	fields, plain, err := m.found.read.fields(dynamic.Point{Tag: p.Tag, Payload: p.Data})
	if err != nil || plain != nil {
		return ""
	}
	var names []string
	for name, v := range fields.All() {
		_, readable := v.Text()
		switch {
		case name == "":
			return "; the payload is one value: leave out the name"
		case name == m.Name && readable:
			return fmt.Sprintf("; --measure %s:state reads a text", m.Name)
		case name != m.Name:
			names = append(names, name)
		}
	}
	if meant := didYouMean(m.Name, names); meant != "" || len(names) == 0 {
		return meant
	}
	more := ""
	if len(names) > shownFields {
		names, more = names[:shownFields], " and more"
	}
	return "; a point has " + strings.Join(names, ", ") + more
}

// didYouMean returns "; did you mean NAME?" for the name that is most like a text, and "" if none is.
func didYouMean(text string, names []string) string {
	if near := display.Nearest(text, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
