package main

import (
	"encoding/json"
	"fmt"
	"strconv"
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
}

// measureOf returns the measure that a flag names: FIELD, or FIELD:KIND.
func measureOf(text string) (measure, error) {
	field, kind, given := strings.Cut(text, ":")
	m := measure{numbers: new(int)}
	if given {
		if err := m.Kind.UnmarshalText([]byte(kind)); err != nil {
			return m, usageError{fmt.Errorf("--measure %s: %w", text, err)}
		}
	}
	if m.Name = field; field == "" {
		m.Name = "value"
	}
	var names []string
	if field != "" {
		names = strings.Split(field, ".")
	}
	place, err := dynamic.NewField(names, dynamic.Options{})
	if err != nil {
		return m, err
	}
	if m.Kind == window.State { // whatever the field is: a text, a number, a boolean
		m.Text = func(p inspect.Payload) (string, bool) {
			x := value(p, names)
			if x == nil {
				return "", false
			}
			*m.numbers++
			return stateText(x), true
		}
		return m, nil
	}
	m.Of = func(p inspect.Payload) (float64, bool) {
		x, ok, err := place.Number(p.Tag, p.Data)
		if ok = ok && err == nil; ok {
			*m.numbers++
		}
		return x, ok
	}
	return m, nil
}

// measuresOf returns the measures that a flag names, each as measureOf does.
func measuresOf(texts []string) (out []measure, err error) {
	for _, text := range texts {
		m, err := measureOf(text)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// numbersOf returns the measure that a flag names if it has numbers.
func numbersOf(text string) (measure, error) {
	m, err := measureOf(text)
	if err == nil && m.Of == nil {
		err = usageError{fmt.Errorf("--measure %s: a state is not a number; leave out its kind", text)}
	}
	return m, err
}

func stateText(x any) string {
	switch x := x.(type) {
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	}
	return aggregate.Number(x.(float64))
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

// value returns what a payload has at a path: a float64, a bool or a string; nil for none. The path is empty for a codec of single
// values, and names a field of a record or of JSON.
func value(p inspect.Payload, path []string) any {
	single := len(path) == 0
	switch p.Tag {
	case codec.Float64().Tag():
		if x, err := codec.Float64().Decode(p.Data); err == nil && single {
			return x
		}
		return nil
	case codec.Int64().Tag():
		if x, err := codec.Int64().Decode(p.Data); err == nil && single {
			return float64(x)
		}
		return nil
	case codec.String().Tag():
		if x, err := codec.String().Decode(p.Data); err == nil && single {
			return x
		}
		return nil
	case codec.Records().Tag():
		r, err := codec.Records().Decode(p.Data)
		field, ok := r.Lookup(strings.Join(path, "."))
		if err != nil || !ok {
			return nil
		}
		if on, isBool := field.Bool(); isBool {
			return on
		}
		if text, isText := field.Str(); isText {
			return text
		}
		if x, isNumber := field.Number(); isNumber {
			return x
		}
		return nil
	}
	raw := json.RawMessage(p.Data)
	for _, field := range path {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return nil
		}
		raw = fields[field]
	}
	var x any
	if json.Unmarshal(raw, &x) != nil {
		return nil
	}
	switch x.(type) {
	case float64, bool, string:
		return x
	}
	return nil
}
