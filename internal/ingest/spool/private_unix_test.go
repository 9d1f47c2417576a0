//go:build unix

package spool_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// TestFolderIsPrivate checks the modes under every umask, and if folder and files existed with other modes: records may
// be personal data.
func TestFolderIsPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "journal")
	s := open(t, dir, spool.Options{})
	appendAll(t, s, "a")
	checkModes(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Chmod(filepath.Join(dir, e.Name()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, dir, spool.Options{})
	checkModes(t, dir)
}

// TestJournalBehindALink checks that the spool does not write to a link's target.
func TestJournalBehindALink(t *testing.T) {
	for _, name := range []string{"lock", "journal.db", "journal.tmp", "reserve"} {
		dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
		if err := os.WriteFile(victim, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(victim, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if s, err := spool.Open(dir, spool.Options{}); err == nil {
			t.Errorf("%s: got nil, want an error", name)
			_ = s.Close()
		}
		if text, err := os.ReadFile(victim); err != nil || string(text) != "mine" {
			t.Errorf("%s: the link's target holds %.20q (%v), want it unchanged", name, text, err)
		}
	}
}

func checkModes(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v, want no access for others", name, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
