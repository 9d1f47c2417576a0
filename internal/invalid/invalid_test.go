package invalid_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

func TestErrorNamesFieldValueAndLimit(t *testing.T) {
	sentinel := errors.New("tsdb: invalid input")
	err := error(invalid.New(sentinel, "tenant", invalid.Quote("a b"), "1 to 64 bytes"))
	if !errors.Is(err, sentinel) {
		t.Errorf("errors.Is(%v, sentinel) = false: a caller cannot tell refused input from a failure", err)
	}
	if got, want := err.Error(), `tsdb: invalid input: tenant is "a b"; want 1 to 64 bytes`; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

func TestQuoteShortensAndEscapes(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", "empty"},
		{"a\x00b", `"a\x00b"`},
		{strings.Repeat("é", 40), `"` + strings.Repeat("é", 32) + `"… (80 bytes)`},
		{"x" + strings.Repeat("é", 40), `"x` + strings.Repeat("é", 31) + `"… (81 bytes)`},
		{strings.Repeat("\x80", 70), `"` + strings.Repeat(`\x80`, 60) + `"… (70 bytes)`},
	} {
		if got := invalid.Quote(tt.in); got != tt.want {
			t.Errorf("Quote(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}
