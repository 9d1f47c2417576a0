package testkit

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files and generated documents from what the tests find")

// mostLines is the largest number of differing lines that Golden prints.
const mostLines = 20

// Golden compares a text with a file. If they differ, it fails the test with the lines that differ and with meaning,
// which says what the difference means. With -update it writes the file instead, unless the test has failed before.
func Golden(t testing.TB, file, got, meaning string) {
	t.Helper()
	file = filepath.FromSlash(file)
	if *update && !t.Failed() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	found, stands := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i, n := 0, 0; i < max(len(found), len(stands)) && n < mostLines; i++ {
		if f, s := line(found, i), line(stands, i); f != s {
			t.Errorf("%s, line %d:\n  the file has %s\n  the test has %s", file, i+1, s, f)
			if n++; len(found) != len(stands) {
				break // the following lines are only shifted
			}
		}
	}
	if *update {
		t.Errorf("%s differs, and -update did not write it, because the test had failed before", file)
		return
	}
	t.Errorf("%s differs: %s. If the change is intended, run the test with -update", file, meaning)
}

func line(of []string, i int) string {
	if i < len(of) {
		return of[i]
	}
	return "no such line"
}
