package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/conform"
)

// TestConform: the engine passes, the report says what was tested and what it cost, and mistakes on the command line are explained.
func TestConform(t *testing.T) {
	t.Setenv("TIDEMARK_PROJECT", "")
	t.Setenv("TIDEMARK_INSTANCE", "")
	out, _, err := tidectl(t, t.Context(), "", "conform", "--engine", "--quick")
	if err != nil || !strings.Contains(out, "0 differ, 0 failed") || !strings.Contains(out, "tokens/one row") {
		t.Errorf("on the engine: %v\n%s", err, out)
	}
	out, _, err = tidectl(t, t.Context(), "", "-o", "json", "conform", "--engine", "--quick")
	var r conform.Report
	if json.Unmarshal([]byte(out), &r) != nil || err != nil || len(r.Results) < 50 || r.Requests["MutateRow"] == 0 || r.Versions["cloud.google.com/go/bigtable"] == "" {
		t.Errorf("as JSON: %v\n%.300s", err, out)
	}
	for want, args := range map[string][]string{
		"needs --project and --instance": {"conform"},
		"takes no arguments":             {"conform", "--engine", "x"},
		"does not open a store":          {"--dir", "x", "conform"},
		"text or json":                   {"-o", "csv", "conform", "--engine"},
		"flag provided but not defined":  {"conform", "--fast"},
	} {
		_, _, err := tidectl(t, t.Context(), "", args...)
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: exit code %d, %v; want %d with %q", args, exitCode(err), err, exitUsage, want)
		}
	}
}
