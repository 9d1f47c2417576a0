package main

import (
	"strings"
	"testing"
)

// TestCompletion: a shell gets the datasets and tenants of the folder where a command takes them, and otherwise
// commands and flags. A folder that cannot be opened gives nothing.
func TestCompletion(t *testing.T) {
	dir := filled(t, 1)
	for line, want := range map[string]string{
		"latest":               "temps",
		"latest temps":         "acme",
		"latest temps acme":    "",
		"tenants usage":        "acme",
		"tenants":              "usage",
		"heatmap":              "show",
		"latest temps acme --": "--",
	} {
		out, _, err := tidectl(t, t.Context(), "", append(append([]string{"--dir", dir}, strings.Fields(line)...), "--generate-shell-completion")...)
		if err != nil || !strings.Contains("\n"+out, "\n"+want) {
			t.Errorf("%s is completed with %q, %v; want %q in it", line, out, err, want)
		}
	}
	if out, _, err := tidectl(t, t.Context(), "", "--dir", t.TempDir(), "latest", "--generate-shell-completion"); err != nil || out != "" {
		t.Errorf("a folder without a store is completed with %q, %v", out, err)
	}
}
