package main

import (
	"slices"
	"strings"
	"testing"
)

// TestExamples: each example of the help is a command that exists, with flags that it takes, and each command that
// takes arguments has one.
func TestExamples(t *testing.T) {
	out, _, err := tidectl(t, t.Context(), "", "--help")
	if err != nil || !strings.Contains(out, "EXAMPLES:") || strings.Contains(out, "\x1b") {
		t.Fatalf("%v: %q", err, out)
	}
	for name, list := range examples {
		if name == "" {
			continue
		}
		help, _, err := tidectl(t, t.Context(), "", append(strings.Fields(name), "--help")...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, example := range list {
			if !strings.Contains(help, "\n   tidectl "+example+"\n") {
				t.Errorf("the help of %s lacks %s", name, example)
			}
			words := strings.Fields(example)
			if !strings.Contains(" "+example+" ", " "+name+" ") {
				t.Errorf("%s is no example of %s", example, name)
			}
			for _, word := range words {
				if flag := strings.Split(word, "=")[0]; strings.HasPrefix(flag, "-") && !slices.ContainsFunc(strings.FieldsFunc(help+out, func(c rune) bool { return c == ' ' || c == ',' || c == '\n' }), func(w string) bool { return w == flag }) {
					t.Errorf("%s: no flag %s", example, flag)
				}
			}
		}
	}
}

// TestColours: help has colours only where they are wanted.
func TestColours(t *testing.T) {
	const help = "NAME:\n   tidectl - x\n\nCOMMANDS:\n   latest   print\n\nOPTIONS:\n   --dir folder  the\n   --output string, -o string  text\n\nEXAMPLES:\n   tidectl latest a\n"
	if got := ink(false).help(help); got != help {
		t.Errorf("without colours: %q", got)
	}
	got := ink(true).help(help)
	for _, want := range []string{"\x1b[1mCOMMANDS:\x1b[0m", "   \x1b[36mlatest\x1b[0m   print", "\x1b[36m--dir", "   \x1b[36mtidectl\x1b[0m latest a"} {
		if !strings.Contains(got, want) {
			t.Errorf("the help is %q, want %q in it", got, want)
		}
	}
	if inkOf(&strings.Builder{}) {
		t.Error("a pipe gets colours")
	}
}
