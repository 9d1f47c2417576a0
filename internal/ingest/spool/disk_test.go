package spool_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

func fileSize(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// fill appends n records of about 1 KB.
func fill(t *testing.T, s *spool.Spool, n int) {
	t.Helper()
	for ; n > 0; n -= 100 {
		texts := make([]string, min(n, 100))
		for i := range texts {
			texts[i] = strings.Repeat("x", 1000)
		}
		appendAll(t, s, texts...)
	}
}

// After an outage the file shrinks, while it is open or at the next start.
func TestFileShrinks(t *testing.T) {
	testkit.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		for _, restart := range []bool{false, true} {
			dir, o := t.TempDir(), spool.Options{NoSync: true}
			small := spool.Shrinking(o, 1<<20)
			if !restart {
				o = small
			}
			s := open(t, dir, o)
			fill(t, s, 20_000)
			full := fileSize(t, dir)
			m := &model{map[uint64]string{}, map[uint64]string{}, map[string]string{}, 20_000}
			for seq := range uint64(20_000) {
				if seq%1000 == 7 {
					m.records[seq] = strings.Repeat("x", 1000)
				} else {
					s.Done(seq)
				}
			}
			time.Sleep(time.Second)
			m.check(t, s)
			if restart {
				s = reopen(t, s, dir, small)
			}
			if size := fileSize(t, dir); full < 20<<20 || size > 6<<20 {
				t.Errorf("restart %v: got a file of %[3]d bytes after delivery, %[2]d before", restart, full, size)
			}
			m.check(t, s)
			appendAll(t, s, "after")
			m.records[m.next] = "after"
			m.next++
			m.check(t, reopen(t, s, dir, o))
		}
	})
}

// Open deletes an incomplete copy that a crash left.
func TestHalfACopyIsThrownAway(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, spool.Options{})
	appendAll(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(dir, "journal.tmp")
	if err := os.WriteFile(temp, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, "records", all(t, open(t, dir, spool.Options{})), []string{"0:a"})
	if _, err := os.Stat(temp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the incomplete copy still exists: %v", err)
	}
}

// Open refuses a file that belongs to another folder.
func TestAnotherFoldersFile(t *testing.T) {
	var dirs []string
	for range 2 {
		dir := t.TempDir()
		if err := open(t, dir, spool.Options{}).Close(); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	if err := os.Rename(filepath.Join(dirs[0], "journal.db"), filepath.Join(dirs[1], "journal.db")); err != nil {
		t.Fatal(err)
	}
	if _, err := spool.Open(dirs[1], spool.Options{}); !errors.Is(err, spool.ErrDamaged) {
		t.Errorf("file of another folder: got %v", err)
	}
}
