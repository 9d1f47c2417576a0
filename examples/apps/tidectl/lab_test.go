package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/lab"
)

// TestLab: a file is written, checked and run, and the exit codes say whether it has mistakes and whether all is as
// expected.
func TestLab(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	file := func(name string) string { return filepath.Join(dir, name) }
	ok := func(want string, args ...string) {
		t.Helper()
		out, _, err := tidectl(t, ctx, "", args...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v; it prints\n%s\nwant %q in it", args, err, out, want)
		}
	}
	refused := func(code int, message string, args ...string) {
		t.Helper()
		_, _, err := tidectl(t, ctx, "", args...)
		if exitCode(err) != code || !strings.Contains(err.Error(), message) {
			t.Errorf("%q: exit code %d, %v; want %d with %q", args, exitCode(err), err, code, message)
		}
	}
	ok("", "lab", "init", file("template.yaml"))
	ok("no mistakes: 4 candidates", "lab", "check", file("template.yaml"))
	refused(exitFailed, "exists", "lab", "init", file("template.yaml"))
	refused(exitUsage, "takes the name of the new file", "lab", "init")
	refused(exitUsage, "want events, factory", "lab", "init", "--workload", "x", file("x.yaml"))
	for _, name := range lab.Workloads() {
		ok("", "lab", "init", "--workload", name, file(name+".yaml"))
		ok("no mistakes", "lab", "check", file(name+".yaml"))
	}

	small := strings.NewReplacer("entities: 100k", "entities: 100", "duration: 1h", "duration: 1m", "heavy: 2m", "heavy: 10s", "site(50)", "site(5)",
		"hottest_cpu: 70%", "hottest_cpu: 70%\n  rows_per_query: 1").Replace(string(lab.Template()))
	if err := os.WriteFile(file("small.yaml"), []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	others := []string{"lab", "run", "--candidate", "time first", "--scale", "1", "--speed", "3600"}
	refused(exitChanges, "not as expected", append(others, "--heatmaps", file("maps"), file("small.yaml"))...) // nothing is known of the one in use
	ok("", "heatmap", "show", "--html", file("map.html"), file("maps/1.heat"))
	text, expected, _ := strings.Cut(small, "expect:")
	if err := os.WriteFile(file("free.yaml"), []byte(text), 0o600); err != nil || !strings.Contains(expected, "rows_per_query") {
		t.Fatal(err)
	}
	ok("not those of Bigtable", append(others, file("free.yaml"))...)
	refused(exitFailed, "not executed as a whole", append(others, "--max-time", "1ms", file("free.yaml"))...)
	refused(exitFailed, "not executed as a whole", append(others, "--max-time", "1ms", file("small.yaml"))...)
	refused(exitChanges, "not as expected", "lab", "run", "--candidate", "entity first", "--scale", "1", "--speed", "3600", "-o", "json", file("small.yaml"))
	ok("Ranking", "lab", "simulate", "--heatmaps", file("maps"), file("small.yaml"))
	ok("", "heatmap", "show", "--html", file("simulated.html"), file("maps/4-simulated.heat"))
	ok("Ranking", "lab", "compare", "--candidate", "time first", "--scale", "1", "--speed", "3600", file("free.yaml"))
	refused(exitUsage, "--cloud needs", "lab", "run", "--cloud", file("small.yaml"))
	refused(exitFailed, "Scale is 7", "lab", "run", "--scale", "7", file("small.yaml"))
	if err := os.WriteFile(file("wrong.yaml"), []byte("duration: 60\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(exitFailed, "line 1: duration is \"60\"", "lab", "check", file("wrong.yaml"))
	refused(exitFailed, "no such file", "lab", "check", file("none.yaml"))
}
