package tablets_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// TestDocument compares the table of constants in docs/lab.md with those of the model. With -update it writes the
// table.
func TestDocument(t *testing.T) {
	const name, begin, end = "../../../docs/lab.md", "<!-- constants -->\n", "<!-- /constants -->"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q", name, begin, end)
	}
	var b strings.Builder
	b.WriteString("| Constant | Is | Value |\n|---|---|---|\n")
	for _, c := range tablets.Constants() {
		name, value := fmt.Sprintf("[%s](%s)", c.Name, c.Source), c.Value
		if c.Source == "" {
			name, value = c.Name, fmt.Sprintf("%s (%s–%s)", c.Value, c.Low, c.High)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, c.Meaning, value)
	}
	testkit.Golden(t, name, before+begin+"\n"+b.String()+"\n"+end+after, "the constants of the model differ")
}
