package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/retention"
)

// aged returns the folder of a store that keeps its data for 90 days.
func aged(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	d90 := gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}
	s := tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{Retention: d90})
	if err := errors.Join(store.Ensure(t.Context(), s), store.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRetention(t *testing.T) {
	dir := aged(t)
	file := filepath.Join(t.TempDir(), "plan.json")
	cmd := func(code int, args ...string) string {
		t.Helper()
		out, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "retention"}, args...)...)
		want(t, code, err, strings.Join(args, " ")+"\n"+remarks)
		return out
	}
	if out := cmd(0, "plan", "--detailed-exitcode"); !strings.Contains(out, "Nothing to do") {
		t.Error(out)
	}
	cmd(0, "drift", "--detailed-exitcode")
	cmd(exitUsage, "plan", "--set", "d90=for ever")
	cmd(exitUsage, "plan", "--set", "d90")
	cmd(exitUsage, "plan", "--set", "=never")
	cmd(exitUsage, "plan", "--set", "d90=never", "--set", "d90=maxage=1d")
	cmd(exitUsage, "apply", "--plan", file, "--set", "d90=never")
	cmd(exitFailed, "plan", "--set", "d91=never")
	cmd(exitFailed, "apply", "--plan", file)

	shorter := []string{"plan", "--set", "d90=maxage=7d"}
	if out := cmd(0, append(shorter, "--out", file)...); !strings.Contains(out, "maxage=90d -> maxage=7d   DESTRUCTIVE") {
		t.Error(out)
	}
	cmd(exitFailed, append(shorter, "--out", file)...) // the file exists
	cmd(exitChanges, append(shorter, "--detailed-exitcode")...)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	var doc struct {
		Items []retention.Item `json:"items"`
	}
	if err := json.Unmarshal([]byte(cmd(0, append(shorter, "-o", "json")...)), &doc); err != nil || len(doc.Items) != 2 || !doc.Items[0].Destructive {
		t.Errorf("%+v, %v", doc, err)
	}

	cmd(exitRefused, "apply", "--set", "d90=maxage=7d", "--allow", "d90") // nobody to ask
	cmd(exitRefused, "apply", "--set", "d90=maxage=7d", "--yes")
	cmd(exitRefused, "apply", "--plan", file)
	cmd(exitFailed, "apply", "--plan", file, "--allow", "d9")
	cmd(exitChanges, append(shorter, "--detailed-exitcode")...)
	if out := cmd(0, "apply", "--plan", file, "--allow", "d90"); !strings.Contains(out, "change d90") {
		t.Error(out)
	}
	if out := cmd(0, "apply", "--plan", file, "--allow", "d90"); !strings.Contains(out, "Nothing was changed") {
		t.Error(out)
	}
	cmd(0, append(shorter, "--detailed-exitcode")...)
	if out := cmd(0, "apply", "--set", "d90=maxage=7d", "--allow", "d90", "--yes"); !strings.Contains(out, "Nothing was changed") {
		t.Error(out)
	}
	if out := cmd(0, "apply", "--set", "d90=maxage=7d || maxage=30d", "--yes"); !strings.Contains(out, "Nothing was changed") {
		t.Error(out)
	}
	cmd(0, "apply", "--set", "d90=never", "--yes")
	cmd(exitFailed, "apply", "--plan", file, "--allow", "d90") // the plan is stale
}
