package spool_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// A commit is synced once. If the sync fails, the commit is unsure, the spool accepts nothing more, and who opens the folder
// later does not build on pages that may be in memory only: the commit is gone.
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
	want(t, "records", all(t, reopen(t, s, dir, o)), []string{"0:a", "1:d"})
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
	if _, err := spool.Open(dir, o); !errors.Is(err, spool.ErrDamaged) {
		t.Errorf("a file without the last commit: %v, want ErrDamaged", err)
	}
}
