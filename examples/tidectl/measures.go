package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/inspect"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func measureUsage(more string) string {
	return "the `field` of the payloads, as temp_c or motor.temp_c" + more + "; without a name where the payload is a number"
}

// measure is the numbers or states of one field of the payloads. It counts them: a field that is misspelt has none.
type measure struct {
	window.Measure[inspect.Payload]
	numbers *int
	names   []string // of the aggregates that the flag names
}

// measureOf returns the measure that a flag names: FIELD, or FIELD:KIND. Windows also take aggregates behind it, as measureWith does.
func (a *app) measureOf(text string) (measure, error) {
	m, err := a.measureWith(text)
	if err == nil && m.names != nil {
		err = usageError{fmt.Errorf("--measure %s: aggregates are for windows and groups; give FIELD or FIELD:KIND", text)}
	}
	return m, err
}

// measureWith returns the measure that a flag names with its kind, with aggregates that are joined by +, or with both: FIELD:mean+max,
// FIELD:counter:increase. Aggregates without a kind are of the first kind that has them.
func (a *app) measureWith(text string) (measure, error) {
	field, more, given := strings.Cut(text, ":")
	m := measure{numbers: new(int)}
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
	r, err := a.reader()
	if err != nil {
		return m, err
	}
	place, err := dynamic.NewField(field, r.options)
	if err != nil {
		return m, err
	}
	read := place.Number
	if m.Kind == window.State { // whatever the field is: a text, a number, a boolean
		read = place.Value
	}
	m.Value = func(p inspect.Payload) codec.Value {
		v, _ := read(p.Tag, p.Data) // the query reports payloads that do not decode
		if _, ok := v.Text(); ok {
			*m.numbers++
		}
		return v
	}
	return m, nil
}

// number returns the number of a payload, and false if it has none that is finite.
func (m *measure) number(p inspect.Payload) (float64, bool) {
	v, ok := m.exact(p)
	x, _ := v.Number()
	return x, ok
}

// exact is number without rounding.
func (m *measure) exact(p inspect.Payload) (codec.Value, bool) {
	v := m.Value(p)
	x, ok := v.Number()
	return v, ok && x-x == 0
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

// numbersOf returns the measure that a flag names if it has numbers.
func (a *app) numbersOf(text string) (measure, error) {
	m, err := a.measureOf(text)
	if err == nil && m.Kind == window.State {
		err = usageError{fmt.Errorf("--measure %s: a state is not a number; leave out its kind", text)}
	}
	return m, err
}

// missing returns an error where points were read and none of them has a value.
func (m *measure) missing(c *cli.Command, points int64) error {
	if points == 0 || *m.numbers > 0 {
		return nil
	}
	what := "a number"
	if m.Kind == window.State {
		what = "a text, a number or a boolean"
	}
	return fmt.Errorf("none of the points has %s in the field %q; %q prints points", what, m.Name, "get "+strings.Join(c.Args().Slice()[:2], " "))
}
