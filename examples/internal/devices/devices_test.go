package devices

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

const introduction = `# Routes for devices

Each route stores messages in the form that the product's maker documents (see the link), from MQTT 5 and 3.1.1, from HTTP with the topic as
the path, and from Pub/Sub with its levels as attributes. [The words of routes](README.md#topics); [the tested
messages](../../internal/devices).

| Product, message | Route | Stored: key, a field (of how many) |
|---|---|---|
`

const limits = `
Not stored as a reader expects:

- SenML whose records share base fields (bn, bt): only the first record has them. Resolve the records first.
- JSON inside a text, as in data of Particle: it stays one text.
- Objects whose names are devices, as of ThingsBoard gateways: the names become part of fields.
`

// TestDocument compares the table for users with the cases of which something is stored.
func TestDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(introduction)
	for _, c := range Cases(t) {
		if len(c.Points) == 0 {
			continue
		}
		fmt.Fprintf(&b, "| [%s](%s) | `%s` | %s |\n", c.Name, c.Source, c.Line(), c.stored())
	}
	b.WriteString(limits)
	testkit.Golden(t, "../../apps/mqtt/devices.md", b.String(), "the routes that users see are not those that are tested")
}

// stored describes what is stored: the key of the first point, a field, if possible a number, and how many fields it
// has.
func (c Case) stored() string {
	p := c.Points[0]
	var numbers, others []string
	for name, v := range p.Fields.All() {
		if _, ok := v.Number(); ok {
			numbers = append(numbers, name)
		} else {
			others = append(others, name)
		}
	}
	fields := append(numbers, others...)
	text := fmt.Sprintf("`%s`: `%s`", strings.Join(p.Key, "`, `"), fields[0])
	if len(fields) > 1 {
		text += fmt.Sprintf(" … (%d)", len(fields))
	}
	if n := len(c.Points); n > 1 {
		text += fmt.Sprintf("; %d points", n)
	}
	return text
}

// TestCases: each case is of another message, says its source, and comes from a documented product.
func TestCases(t *testing.T) {
	cases := Cases(t)
	if len(cases) < 32 {
		t.Errorf("%d cases, want at least 32", len(cases))
	}
	names, datasets := map[string]bool{}, map[string]bool{}
	for _, c := range cases {
		source, err := url.Parse(c.Source)
		if err != nil || source.Scheme != "https" {
			t.Errorf("%s: the source %q is no address", c.Name, c.Source)
		}
		if names[c.Name] || datasets[c.word("dataset")] {
			t.Errorf("%s: its name, or its dataset %s, is that of an earlier case", c.Name, c.word("dataset"))
		}
		names[c.Name], datasets[c.word("dataset")] = true, true
	}
}
