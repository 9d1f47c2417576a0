package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

func TestMapping(t *testing.T) {
	keys := inbound.Keys{}
	m, err := readMapping("otlp.map", keys)
	if err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[string]string{"system.cpu.time": "host", "http.server.duration": "http", "x": "metrics"} {
		if r := m.rule(metric); r == nil || r.dataset != want {
			t.Errorf("the metric %s has the rule %v, want the dataset %s", metric, r, want)
		}
	}
	if got := fmt.Sprint(keys["host"]); got != "[resource.host.name *]" {
		t.Errorf("the key of host is %s", got)
	}
	// Each faulty text names its line and the fault.
	for text, want := range map[string]string{
		"":                                        "no store line",
		"# only\n\n":                              "no store line",
		"put a in b by c":                         `line 1: the line begins with "put"`,
		"\n# x\nstore a in b":                     "line 3: want store METRIC",
		"store in b by c":                         "want store METRIC",
		"store a in b by":                         "want store METRIC",
		"store a in b c by d":                     "want store METRIC",
		"store a*b in c by d":                     "a*b has a * that is not at its end",
		"store a in b by c c":                     "the tag c is given twice",
		"store a in b by * c":                     "* is not the last tag",
		"store a in * by c":                       `the dataset "*" contains *`,
		"store a in * by c *hash":                 `the dataset "*" contains *`,
		"store a in b by *hash c":                 "*hash is not the last tag",
		"store a in b by *hash *":                 "*hash is not the last tag",
		"store a in b by c.*":                     "c.* contains *",
		"store a in b by resource.":               "lacks the attribute's name",
		"store a in b,c by d":                     "line 1: ",
		"store a in b by c\nstore d in b by e":    "line 2: the measurement b has a key already",
		"store a in b by c\nstore a in d by e":    "line 2: the metrics a are stored in b already",
		"store a* in b by c\nstore ab* in d by e": "line 2: the metrics ab* are stored in b already, because of a*",
		"store a* ab in b by c":                   "the metrics ab are named already",
		"drop":                                    "want drop ATTRIBUTE",
		"drop a*b":                                "not at its end",
		"drop c*\nstore a in b by cd":             "line 2: the attribute cd is dropped by c*",
		"store a in b by cd *\ndrop c*":           "line 2: c* drops the attribute cd, which is part of the key of b",
	} {
		if _, err := readMapping(write(t, text), inbound.Keys{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the mapping %q: %v, want an error with %q", text, err, want)
		}
	}
	if _, err := readMapping(write(t, "store a in b by *hash\ndrop *\nstore c in d by *hash"), inbound.Keys{}); err != nil {
		t.Errorf("dropped attributes next to a hash of the others: %v", err)
	}
	if _, err := parse([]string{"-token", "secret=acme", "-key", "cpu=host,*hash"}, io.Discard); err == nil || !strings.Contains(err.Error(), "*hash") {
		t.Errorf("a hash in -key: %v", err)
	}
	if _, err := readMapping(write(t, "store a in b by cd *\ndrop *.x"), inbound.Keys{}); err == nil {
		t.Error("a pattern that begins with * is accepted")
	}
	many := strings.Repeat("drop a\n", maxRules) + "store a in b by c"
	if _, err := readMapping(write(t, many), inbound.Keys{}); err == nil || !strings.Contains(err.Error(), "line 1001: more than 1000 rules") {
		t.Errorf("too many rules: %v", err)
	}
}
