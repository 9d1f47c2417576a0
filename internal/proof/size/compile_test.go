package size_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestCompiledFunctions counts the functions that the compiler makes for a package that uses a store, and for one that
// declares a type of payloads. The compiler makes the methods of a generic type in each package that can reach it,
// through fields of structs too, so one field with such a type can add a second to the build of every package.
func TestCompiledFunctions(t *testing.T) {
	for name, most := range map[string]int{
		"store":   700,  // 577 with Go 1.26
		"payload": 1400, // 1222
	} {
		out := filepath.Join(t.TempDir(), "bench")
		if text, err := exec.Command("go", "build", "-gcflags=-bench="+out, "./testdata/"+name).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`be:compilefuncs .*\s(\d+) funcs\s`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("no count of functions in %q", text)
		}
		if n, _ := strconv.Atoi(string(found[1])); n > most {
			t.Errorf("the compiler makes %d functions for testdata/%s, want at most %d", n, name, most)
		}
	}
}
