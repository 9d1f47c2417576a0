package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/examples/internal/programtest"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestFolderAbove: --dir takes the folder above a store, and names the stores of one that has several.
func TestFolderAbove(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "store")
	if err := os.Rename(filled(t, 1), dir); err != nil {
		t.Fatal(err)
	}
	out, remarks, err := tidectl(t, t.Context(), "", "--dir", above, "tenants", "list")
	if err != nil || !strings.Contains(out, "acme") || !strings.Contains(remarks, dir) {
		t.Errorf("--dir of the folder above: %s, %s, %v", out, remarks, err)
	}
	other := filepath.Join(above, "other")
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", above, "tenants", "list")
	if want(t, exitUsage, err, "two stores"); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), other) {
		t.Errorf("--dir of a folder with two stores: %v", err)
	}
}

// TestFolderInUse: a folder that another program has open is named with that program.
func TestFolderInUse(t *testing.T) {
	dir := filled(t, 1)
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	cmd, stderr := programtest.New(t, "--dir", dir, "tenants", "list")
	if err := cmd.Run(); err == nil || strings.Contains(stderr.String(), "resource temporarily") || !strings.Contains(stderr.String(), "another program has the store in "+dir+" open"+holderOf(os.Getpid())) {
		t.Errorf("the program ends with %v and prints %q", err, stderr)
	}
}

func holderOf(pid int) string {
	if holder(os.DevNull) == "" && os.PathSeparator == '\\' {
		return ""
	}
	return fmt.Sprint(": pid ", pid, ";")
}

// TestFolderDamaged: a damaged store is named in words, with its folder.
func TestFolderDamaged(t *testing.T) {
	dir := filled(t, 1)
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	for _, name := range manifests {
		if err := os.WriteFile(name, []byte("no manifest"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = tidectl(t, t.Context(), "", "--dir", dir, "tenants", "list")
	if err == nil || !strings.HasPrefix(err.Error(), "the store in "+dir+" is damaged: its files are not what was written.") {
		t.Errorf("a damaged folder: %v", err)
	}
}
