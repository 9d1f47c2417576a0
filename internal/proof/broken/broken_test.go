package broken

import (
	"os"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/broken/testdata/sum"
)

func TestBroken(t *testing.T) { Run(t) }

// TestSum is the test that the patches of this package are for. It catches one of them.
func TestSum(t *testing.T) {
	if got := sum.Of(2, 3); got != 5 {
		t.Errorf("2 and 3 make %d, want 5", got)
	}
}

// A patch that the test does not catch, that it catches for another reason, or that does not fit the code is an error.
// So is a test that fails without the patch.
func TestCheckRefuses(t *testing.T) {
	text, err := os.ReadFile("testdata/broken/minus.patch")
	if err != nil {
		t.Fatal(err)
	}
	change := func(old, new string) string { return strings.ReplaceAll(string(text), old, new) }
	for _, c := range []struct{ name, text, want string }{
		{"caught", string(text), ""},
		{"not caught", change("^TestSum$", "^none$"), "does not catch it"},
		{"another reason", change("caught: ", "caught: never "), "without the words"},
		{"not compiled", change("+\treturn a - b", "+\treturn a -"), "does not compile"},
		{"another line", change("-\treturn a + b", "-\treturn a * b"), "no longer fits"},
		{"an unknown file", change("sum.go", "none.go"), "no such file"},
		{"a test that fails", change("-test.run=^TestSum$", "-test.none"), "fails without the patch"},
		{"no args", change("args: ", ""), "needs a first sentence"},
		{"no diff", "A fault.\n", "diff --git"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := parse(c.text)
			if err == nil {
				err = p.check(t.Context(), t.TempDir(), true)
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got the error %v, want %q", err, c.want)
			}
		})
	}
}
