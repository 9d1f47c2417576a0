package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestFolderAttach: a folder that another program has open is read and written through that program.
func TestFolderAttach(t *testing.T) {
	dir := filled(t, 1)
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	cmd, stderr := programtest.New(t, "--dir", dir, "tenants", "list")
	if err := cmd.Run(); err != nil {
		t.Errorf("beside a program that has the folder open: %v, %s", err, stderr)
	}
	if _, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "onboard", "newcomer"); err != nil {
		t.Errorf("a write beside that program: %v", err)
	}
	if out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "tenants", "list"); err != nil || !strings.Contains(out, "newcomer") {
		t.Errorf("the write reads as %s, %v", out, err)
	}
}

// TestFolderWatch: watch shows what comes to a folder that another program has open.
func TestFolderWatch(t *testing.T) {
	dir := storeWithNotes(t)
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	go func() {
		for n := 0; ctx.Err() == nil; n++ {
			_, _, _ = tidectl(t, ctx, "", "--dir", dir, "put", "--json", fmt.Sprintf(`{"n":%d}`, n), "notes", "acme", "site=berlin, ost", "device=7")
		}
	}()
	r, w := io.Pipe()
	go func() {
		_ = w.CloseWithError(run(ctx, []string{"--dir", dir, "watch", "notes", "acme", "site=berlin, ost", "device=7"}, streams{out: w, err: io.Discard}))
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	stop()
	_ = r.Close()
	if err != nil {
		t.Errorf("watch ends with %v after %q", err, line)
	}
}

// TestFolderInUse: a folder that another program has open to itself is named with that program.
func TestFolderInUse(t *testing.T) {
	dir := filled(t, 1)
	store, err := embedded.New(t.Context(), embedded.Options{Dir: dir, Exclusive: true})
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
