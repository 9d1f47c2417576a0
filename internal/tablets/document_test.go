package tablets_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/tablets"
)

var update = flag.Bool("update", false, "write the constants of the model to docs/lab.md")

// TestDocument compares the table of constants in docs/lab.md with those of the model. With -update it writes the table.
func TestDocument(t *testing.T) {
	const name, begin, end = "../../docs/lab.md", "<!-- constants -->\n", "<!-- /constants -->"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q", name, begin, end)
	}
	var b strings.Builder
	b.WriteString("| Constant | Is | Value | From |\n|---|---|---|---|\n")
	for _, c := range tablets.Constants() {
		from := fmt.Sprintf("[documented](%s)", c.Source)
		if c.Source == "" {
			from = fmt.Sprintf("**assumed**, %s to %s", c.Low, c.High)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Name, c.Meaning, c.Value, from)
	}
	want := "\n" + b.String() + "\n"
	switch {
	case table == want:
	case *update:
		if err := os.WriteFile(name, []byte(before+begin+want+end+after), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not have the constants of the model; run: go test ./internal/tablets -run TestDocument -update", name)
	}
}
