package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// A folder without a store is refused, and nothing is created in it.
func TestFolderWithoutAStore(t *testing.T) {
	dir := t.TempDir()
	for _, command := range []string{"list", "usage acme", "erase acme --yes", "import acme --file -"} {
		_, _, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "tenants"}, strings.Fields(command)...)...)
		want(t, exitFailed, err, command)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("the folder holds %v, %v", files, err)
	}
}

// A refused export leaves no file that would block the next one.
func TestRefusedExport(t *testing.T) {
	dir, file := filled(t, 10), filepath.Join(t.TempDir(), "acme.ndjson")
	_, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", file, "--dataset", "nope")
	want(t, exitFailed, err, "export of a dataset that is not there")
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "erase", "acme", "--yes", "--settle", "1ns")
	want(t, 0, err, "erase")
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", file)
	want(t, exitFailed, err, "export of an erased tenant")
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused export left a file: %v", err)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "beta", "--file", file)
	want(t, 0, err, "the next export")
}

// The message of an import that ended early says how to continue: never from before the stored part, and with the
// missing flag.
func TestStoppedImport(t *testing.T) {
	dir, empty := filled(t, 2500), t.TempDir()
	whole, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "export", "acme", "--file", "-")
	want(t, 0, err, "export")
	into := []string{"--dir", empty, "tenants", "import", "acme", "--file", "-"}
	out, _, err := tidectl(t, t.Context(), whole, append(into, "--create", "--dry-run")...)
	if want(t, 0, err, "dry run"); !strings.Contains(out, "Would be sent") || strings.Contains(out, "Stored") {
		t.Errorf("the output is %s", out)
	}
	_, _, err = tidectl(t, t.Context(), whole, into...)
	if want(t, exitFailed, err, "import without --create"); !strings.Contains(err.Error(), "--create") {
		t.Errorf("import without --create: %v, want it named", err)
	}
	cut := whole[:len(whole)*9/10]
	_, remarks, err := tidectl(t, t.Context(), cut, append(into, "--create")...)
	if want(t, exitDamaged, err, "import of a file that is cut off"); !strings.Contains(remarks, "whole copy") {
		t.Errorf("the message is %s", remarks)
	}
	_, rest, _ := strings.Cut(remarks, "--continue '")
	at, _, _ := strings.Cut(rest, "'")
	_, remarks, err = tidectl(t, t.Context(), whole[:len(whole)/2], append(into, "--continue", at)...)
	if want(t, exitDamaged, err, "continued with less of the file"); strings.Contains(remarks, "--continue") {
		t.Errorf("the message leads back: %s", remarks)
	}
	out, _, err = tidectl(t, t.Context(), whole, append(into, "--continue", at)...)
	if want(t, 0, err, "continued"); !strings.Contains(out, "Before") {
		t.Errorf("the output is %s", out)
	}
	other := append([]string(nil), into...)
	other[4] = "beta"
	_, _, err = tidectl(t, t.Context(), whole, other...)
	if want(t, exitFailed, err, "another tenant's file"); !errors.Is(err, transfer.ErrTenant) || !strings.Contains(err.Error(), "--other-tenant") {
		t.Errorf("another tenant's file: %v, want --other-tenant named", err)
	}
}
