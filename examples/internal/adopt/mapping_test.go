package adopt_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/adopt"
)

// TestMistakes checks that each mistake of a file is reported with its line and with what is allowed.
func TestMistakes(t *testing.T) {
	const good = `table: t
tenant: acme
dataset: {name: d}
key: {separator: "#", parts: [device, time]}
time: {unit: ms, width: 13}
value: {column: "d:j", as: json}
`
	if _, err := adopt.Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"table: t\n", "", "table is missing"},
		{"table: t", "tabel: t", "line 1: tabel is not a field"},
		{"table: t", "table: [t]", "line 1: this is a list"},
		{"tenant: acme", "tenant: a/b", `line 2: tenant is "a/b"`},
		{"tenant: acme\n", "", "line 3: no tenant"},
		{"[device, time]", "[tenant, device, time]", "line 2: tenant is \"acme\", and key.parts has a tenant"},
		{"name: d}", "name: d/e}", `line 3: dataset.name is "d/e"`},
		{"name: d}", "name: d, precision: s}", `line 3: dataset.precision is "s"`},
		{"name: d}", "name: d, retention: d9=9d}", "line 3: dataset.retention"},
		{"name: d}", "name: d, retention: d9=maxversions=3}", "line 3: dataset.retention"},
		{"[device, time]", "[time]", "line 4: key.parts names no key field"},
		{"[device, time]", "[device, device, time]", `line 4: key.parts has "device" twice`},
		{"[device, time]", "['device:int', time]", "line 4: key.parts has \"device:int\""},
		{"[device, time]", "['de vice', time]", `line 4: key.parts has "de vice"`},
		{"[device, time]", "[device, time(8)]", "want the width under time"},
		{`"#"`, `""`, `line 4: key.parts has "device" without a width`},
		{"unit: ms", "unit: h", `line 5: time.unit is "h"`},
		{"unit: ms", "encoding: hex, unit: ms", `line 5: time.encoding is "hex"`},
		{"width: 13", "width: 40", `line 5: time.width is "40"`},
		{"width: 13", "reversed: -1", `line 5: time.reversed is "-1"`},
		{"unit: ms, width: 13", "encoding: rfc3339, width: 21", "line 5: time.width is 21"},
		{"time]", "-time]", "line 5: time is described, but key.parts has no time"},
		{"as: json}", "as: jsn}", `line 6: as is "jsn"`},
		{"as: json}", "as: bool}", `line 6: as is "bool", which no payload can be`},
		{`"d:j"`, "dj", `line 6: column is "dj"`},
		{"as: json}", "as: json}\nskip: [all]", `line 7: skip has "all"`},
		{"as: json}", "as: json}\ncells: maybe", `line 7: cells is "maybe"`},
		{"as: json}", "as: json}\nfields: [{name: a, column: 'd:a', as: text}]", "line 6: value and fields are both there"},
		{"value: {column: \"d:j\", as: json}", "fields: [{column: 'd:a', as: text}]", "line 6: column d:a has no name"},
		{"as: json}", "as: json}\n---\na: 1", "more than one document"},
		{"table: t", "\ttable: t", "this is not YAML"},
	} {
		_, err := adopt.Parse([]byte(strings.Replace(good, c.old, c.new, 1)))
		if !errors.Is(err, adopt.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %q instead of %q:\n%v\nwant %s", c.new, c.old, err, c.want)
		}
	}
	if _, err := adopt.Parse([]byte(strings.Repeat("x: 1\n", 30))); err == nil || strings.Count(err.Error(), "\n") > 25 {
		t.Errorf("a file of another kind gives %v, want a short list", err)
	}
}

// TestDescribe drafts a mapping for each layout, which fits after the tenant is named.
func TestDescribe(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) {
			w := newWorld(t)
			table := w.create(l.name)
			l.put(t, table, devices, 0, perDevice, 0)
			text, err := adopt.Describe(t.Context(), table, l.name)
			w.ok(err)
			m, err := adopt.Parse(text)
			if err != nil {
				t.Fatalf("the draft is no mapping: %v\n%s", err, text)
			}
			s, err := adopt.Open(table, m)
			w.ok(err)
			report, err := s.Check(t.Context(), w.store, adopt.CheckOptions{})
			w.ok(err)
			if report.Points != devices*perDevice || !report.Oldest.Equal(at(0)) || report.Refused() {
				t.Errorf("the draft gives %+v, want %d points from %s on\n%s", report, devices*perDevice, at(0), text)
			}
			if _, err := s.Copy(t.Context(), w.store, adopt.CopyOptions{}); !errors.Is(err, adopt.ErrInvalid) || !strings.Contains(err.Error(), "change-me") {
				t.Errorf("Copy for the tenant of the draft = %v, want ErrInvalid", err)
			}
		})
	}
}

// yamlBlock returns the first block of YAML of a page.
func yamlBlock(t *testing.T, page string) []byte {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```yaml\n")
	block, _, ended := strings.Cut(block, "```")
	if !ok || !ended {
		t.Fatal("the page has no block of YAML")
	}
	return []byte(block)
}
