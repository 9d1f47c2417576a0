package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb/inspect"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func measureUsage(more string) string {
	return "the `field` of the payloads, as temp_c or motor.temp_c" + more + "; without a name where the payload is a number"
}

// measure is the numbers of one field of the payloads. It counts them: a field that is misspelt has none.
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
	var path []string
	if field != "" {
		path = strings.Split(field, ".")
	}
	m.Of = func(p inspect.Payload) (float64, bool) {
		x, ok := number(p, path)
		if ok {
			*m.numbers++
		}
		return x, ok
	}
	return m, nil
}

// missing returns an error where points were read and none of them has a number.
func (m *measure) missing(c *cli.Command, points int64) error {
	if points == 0 || *m.numbers > 0 {
		return nil
	}
	return fmt.Errorf("none of the points has a number in the field %q; %q prints points", m.Name, "get "+strings.Join(c.Args().Slice(), " "))
}

// number returns a number of a payload: that of a codec of numbers, of a field of a record, or of JSON. A boolean is 0 or 1.
func number(p inspect.Payload, path []string) (float64, bool) {
	switch name := strings.Join(path, "."); p.Tag {
	case codec.Float64().Tag():
		x, err := codec.Float64().Decode(p.Data)
		return x, err == nil && name == ""
	case codec.Int64().Tag():
		x, err := codec.Int64().Decode(p.Data)
		return float64(x), err == nil && name == ""
	case codec.Records().Tag():
		r, err := codec.Records().Decode(p.Data)
		value, ok := r.Lookup(name)
		if on, isBool := value.Bool(); isBool {
			return oneIf(on), err == nil && ok
		}
		x, isNumber := value.Number()
		return x, err == nil && ok && isNumber
	}
	raw := json.RawMessage(p.Data)
	for _, field := range path {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return 0, false
		}
		raw = fields[field]
	}
	var x any
	if json.Unmarshal(raw, &x) != nil {
		return 0, false
	}
	switch x := x.(type) {
	case float64:
		return x, true
	case bool:
		return oneIf(x), true
	}
	return 0, false
}

func oneIf(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
