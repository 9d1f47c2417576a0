package spool_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// A commit is synced once. If the sync fails, the commit is unsure, the spool accepts nothing more, and who opens the
// folder later does not build on pages that may be in memory only: the commit is gone.
func TestSyncFails(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("the disk is gone")
	var fail atomic.Bool
	var syncs atomic.Int64
	o := spool.FailingSync(spool.Options{}, func(sync func() error) error {
		syncs.Add(1)
		if fail.Load() {
			return broken
		}
		return sync()
	})
	s := open(t, dir, o)
	before := syncs.Load()
	appendAll(t, s, "a")
	if n := syncs.Load() - before; n != 1 {
		t.Errorf("an append syncs %d times, want 1", n)
	}
	fail.Store(true)
	if _, err := s.Append(t.Context(), [][]byte{[]byte("b")}); !errors.Is(err, spool.ErrUnsure) || !errors.Is(err, spool.ErrFailed) || !errors.Is(err, broken) {
		t.Errorf("an append whose sync failed: %v, want ErrUnsure, ErrFailed and the cause", err)
	}
	fail.Store(false)
	if _, err := s.Append(t.Context(), [][]byte{[]byte("c")}); !errors.Is(err, spool.ErrFailed) {
		t.Errorf("an append after a sync failed: %v, want ErrFailed", err)
	}
	if err := s.Close(); !errors.Is(err, broken) {
		t.Errorf("close: %v, want the cause", err)
	}
	s = open(t, dir, o)
	want(t, "records", all(t, s), []string{"0:a"})
	appendAll(t, s, "d")
	want(t, "records", all(t, reopen(t, s, dir, o)), []string{"0:a", fmt.Sprintf("%d:d", uint64(1+gap))})
}

// A journal that was closed has its last commit. If that is lost later, Open reports it.
func TestLostCommitOfAClosedJournal(t *testing.T) {
	dir, o := t.TempDir(), spool.Options{NoSync: true}
	name := filepath.Join(dir, "journal.db")
	s := open(t, dir, o)
	appendAll(t, s, "a", "b")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, "c")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, before, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if s, err := spool.Open(dir, o); !errors.Is(err, spool.ErrDamaged) {
			t.Errorf("a file without the last commit: %v, want ErrDamaged each time", err)
			if err == nil {
				_ = s.Close()
			}
		}
	}
}

// Open syncs a file whose process may have been killed before its last sync. If that fails, a later sync that succeeds
// proves nothing: the next Open copies the records into a new file, and refuses the old one until it can.
func TestOpenCannotSync(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, closed := range []bool{false, true} {
		dir := t.TempDir()
		name := filepath.Join(dir, "journal.db")
		s := open(t, dir, spool.Options{})
		appendAll(t, s, "a", "b")
		next := uint64(2 + gap) // The copy keeps no note.
		if !closed {
			file, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir = folderOf(t, file, []byte(s.Stream()+"\n"))
			name, next = filepath.Join(dir, "journal.db"), 2+2*gap
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		before := statOpen(t, name)
		failing := spool.FailingSync(spool.Options{}, func(func() error) error { return broken })
		if _, err := spool.Open(dir, failing); !errors.Is(err, broken) {
			t.Fatalf("closed %v: %v, want the error of the sync", closed, err)
		}
		unwilling := spool.FailingFolderSync(spool.Options{}, func() error { return broken })
		if _, err := spool.Open(dir, unwilling); !errors.Is(err, broken) {
			t.Fatalf("closed %v: %v, want the error of the copy", closed, err)
		}
		copied := statOpen(t, name)
		for opens := range 2 {
			s := open(t, dir, spool.Options{})
			now, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if opens == 0 && (os.SameFile(now, before) || os.SameFile(now, copied)) {
				t.Errorf("closed %v: Open builds on a file whose sync failed", closed)
			}
			want(t, "records", all(t, s)[:2], []string{"0:a", "1:b"})
			if seq := appendAll(t, s, "c"); seq != next+uint64(opens) {
				t.Errorf("closed %v: the next record has the number %d, want %d", closed, seq, next+uint64(opens))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// kept tells which file has the name now. It keeps the file open: else the disk may give its number to a new file.
func statOpen(t *testing.T, name string) os.FileInfo {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info
}
