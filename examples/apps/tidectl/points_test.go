package main

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var notes = tsdb.MustDefine("notes", tsdb.Key("site").Uint("device", 4), codec.JSON[map[string]string](), tsdb.SchemaOptions{})

// noted returns the folder of a store in which acme has notes.
func storeWithNotes(t *testing.T) string {
	t.Helper()
	dir := filled(t, 3)
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	err = store.Ensure(t.Context(), notes)
	repo := notes.For(store, tenant.MustParse("acme"))
	for i, note := range []string{"plain", "a, \"b\"\nc", "=1+2"} {
		e, eerr := notes.Entity("berlin, ost", 7)
		err = errors.Join(err, eerr, repo.Put(t.Context(), e, time.Unix(int64(1_780_000_000+i), 0), map[string]string{"note": note}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tidectl prints and stores points of datasets that it was not compiled with, and a program reads them back.
func TestInspect(t *testing.T) {
	dir := storeWithNotes(t)
	key := []string{"site=berlin, ost", "device=7"}
	run := func(code int, args ...string) (string, error) {
		t.Helper()
		out, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "-o", "json"}, args...)...)
		want(t, code, err, strings.Join(args, " "))
		return out, err
	}
	newest := `{"dataset":"notes","key":{"device":"7","site":"berlin, ost"},"time":"2026-05-28T20:26:42Z","class":"keep","tag":"json","json":{"note":"=1+2"}}` + "\n"
	if out, _ := run(0, append([]string{"latest", "notes", "acme"}, key...)...); out != newest {
		t.Errorf("latest prints %s, want %s", out, newest)
	}
	if out, _ := run(0, "latest", "notes", "acme"); out != newest {
		t.Errorf("latest of all entities prints %s, want %s", out, newest)
	}
	if out, _ := run(0, append([]string{"get", "--limit", "2", "notes", "acme"}, key...)...); strings.Count(out, "\n") != 2 || !strings.HasPrefix(out, newest) {
		t.Errorf("get prints %s", out)
	}
	if out, _ := run(0, append([]string{"get", "--to", "2026-05-28T20:26:41Z", "notes", "acme"}, key...)...); strings.Count(out, "\n") != 1 || !strings.Contains(out, "plain") {
		t.Errorf("get --to prints %s", out)
	}
	if out, _ := run(0, "get", "temps", "acme", "device=roof"); !strings.Contains(out, `"json":2.0}`) || strings.Contains(out, "base64") {
		t.Errorf("get of numbers prints %s, want three numbers", out)
	}

	run(0, append([]string{"put", "--time", "2026-05-30", "--json", `{"note":"by hand"}`, "notes", "acme"}, key...)...)
	run(0, "put", "--json", `{"note":"first"}`, "notes", "newcomer", "site=x", "device=1")
	out, _ := run(0, append([]string{"latest", "notes", "acme"}, key...)...)
	if !strings.Contains(out, "by hand") || !strings.Contains(out, "2026-05-30T00:00:00Z") {
		t.Errorf("after put, latest prints %s", out)
	}
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	e, err := notes.Entity("berlin, ost", 7)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := notes.For(store, tenant.MustParse("acme")).Latest(t.Context(), e); err != nil || p.Value["note"] != "by hand" {
		t.Errorf("a program reads %v, %v", p, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	for _, wrong := range []struct {
		code int
		says string
		args []string
	}{
		{exitFailed, "site, device", []string{"get", "notes", "acme", "site=x"}},
		{exitUsage, "site, device", []string{"get", "notes", "acme", "site=x", "device=1", "room=2"}},
		{exitUsage, "did you mean device?", []string{"get", "notes", "acme", "site=x", "devcie=1"}},
		{exitFailed, "did you mean notes?", []string{"get", "note", "acme", "site=x"}},
		{exitFailed, "did you mean notes?", []string{"datasets", "show", "--dataset", "ntoes"}},
		{exitUsage, "did you mean tenants?", []string{"tenant", "list"}},
		{exitUsage, `"yesterday" is not a time; want a date such as 2026-11-01`, []string{"get", "notes", "acme", "site=x", "device=1", "--from", "yesterday"}},
		{exitFailed, "device", []string{"get", "notes", "acme", "site=x", "device=seven"}},
		{exitUsage, "site, device", []string{"get", "notes", "acme", "x"}},
		{exitUsage, "each field once", []string{"get", "notes", "acme", "site=x", "site=y"}},
		{exitUsage, "FIELD=VALUE", []string{"get", "notes"}},
		{exitUsage, "--limit", []string{"get", "--limit", "0", "notes", "acme", "site=x", "device=1"}},
		{exitUsage, "--every", []string{"watch", "--every", "1ms", "notes", "acme", "site=x", "device=1"}},
		{exitFailed, "catalogue", []string{"get", "none", "acme", "site=x"}},
		{exitFailed, "no tenant nobody", []string{"get", "notes", "nobody", "site=x", "device=1"}},
		{exitFailed, "not found", []string{"latest", "notes", "acme", "site=x", "device=1"}},
		{exitUsage, "--base64", []string{"put", "notes", "acme", "site=x", "device=1"}},
		{exitUsage, "no JSON", []string{"put", "--json", "{", "notes", "acme", "site=x", "device=1"}},
		{exitUsage, "--base64", []string{"put", "--json", "{}", "temps", "acme", "device=1"}},
		{exitFailed, "tag", []string{"put", "--json", "{}", "--tag", "json", "temps", "acme", "device=1"}},
		{exitFailed, "class", []string{"put", "--json", "{}", "--class", "d9", "notes", "acme", "site=x", "device=1"}},
	} {
		if _, err := run(wrong.code, wrong.args...); err == nil || !strings.Contains(err.Error(), wrong.says) {
			t.Errorf("%v: error %v, want %q in it", wrong.args, err, wrong.says)
		}
	}
}

// TestUnknownEntity: a command on an entity without points says so on standard error, in each form.
func TestUnknownEntity(t *testing.T) {
	dir := storeWithNotes(t)
	for _, command := range []string{"get", "windows --every 1h --measure n --from 2026-06-01 --to 2026-06-02", "outages --longer 1h --from 2026-06-01 --to 2026-06-02"} {
		for _, form := range []string{"text", "json", "csv"} {
			args := append([]string{"--dir", dir, "-o", form}, strings.Fields(command)...)
			out, remarks, err := tidectl(t, t.Context(), "", append(args, "notes", "acme", "site=x", "device=1")...)
			if want(t, 0, err, command); strings.Contains(out, "x/0001") || !strings.Contains(remarks, "x/0001 has no points in dataset notes") {
				t.Errorf("%s as %s prints %s and the remark %s", command, form, out, remarks)
			}
		}
	}
}

// TestWatchOfAFolder: watch prints points from a time on, oldest first. It then ends and says why, because no other
// program has the folder open.
func TestWatchOfAFolder(t *testing.T) {
	dir := storeWithNotes(t)
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "watch", "--from", "2026-05-28T20:26:41Z", "notes", "acme", "site=berlin, ost", "device=7")
	lines := strings.Split(out, "\n")
	if want(t, exitFailed, err, "watch"); len(lines) != 3 || !strings.Contains(lines[0], "a, ") || !strings.Contains(lines[1], "=1+2") {
		t.Errorf("watch prints %q", out)
	}
	if err == nil || !strings.Contains(err.Error(), "no other program has the folder open") {
		t.Errorf("watch ends with %v", err)
	}
}

// CSV has a column for each field, and a reader of RFC 4180 gets the stored values back.
func TestCSV(t *testing.T) {
	dir := storeWithNotes(t)
	file := filepath.Join(t.TempDir(), "notes.csv")
	_, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--dataset", "notes", "--format", "csv", "--file", file)
	want(t, 0, err, "export as CSV")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || len(rows) != 4 || strings.Join(rows[0], " ") != "site device time class tag note more payload" || strings.Contains(string(text), "\r") {
		t.Fatalf("the file holds %q, %v", text, err)
	}
	if got := rows[2]; got[0] != "berlin, ost" || got[1] != "7" || got[2] != "2026-05-28T20:26:41Z" || got[5] != "a, \"b\"\nc" || got[6]+got[7] != "" {
		t.Errorf("a row is %q", got)
	}
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--dataset", "temps", "--format", "csv", "--file", "-")
	if want(t, 0, err, "export as CSV"); !strings.HasPrefix(out, "device,time,class,tag,value,more,payload\nroof,2026-05-28T20:26:42Z,keep,f64,2,,\n") || strings.Count(out, "\n") != 4 {
		t.Errorf("standard output has %q", out)
	}
	for _, args := range []string{"--format csv", "--format csv --dataset notes --dataset temps", "--format xml", "--format csv --dataset notes --continue"} {
		_, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "tenants", "export", "acme", "--file", file + "2"}, strings.Fields(args)...)...)
		want(t, exitUsage, err, args)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", file+"3", "--format", "csv", "--dataset", "none")
	if want(t, exitFailed, err, "a dataset that is not there"); err == nil {
		t.Error("CSV without a dataset succeeds, want an error")
	}
	if _, err := os.Stat(file + "3"); err == nil {
		t.Error("a refused export left a file")
	}
}
