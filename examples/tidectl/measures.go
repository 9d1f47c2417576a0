package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/tsdb/dynamic"
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
	var names []string
	if field != "" {
		names = strings.Split(field, ".")
	}
	place, err := dynamic.NewField(names, dynamic.Options{})
	if err != nil {
		return m, err
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

// missing returns an error where points were read and none of them has a number.
func (m *measure) missing(c *cli.Command, points int64) error {
	if points == 0 || *m.numbers > 0 {
		return nil
	}
	return fmt.Errorf("none of the points has a number in the field %q; %q prints points", m.Name, "get "+strings.Join(c.Args().Slice(), " "))
}
