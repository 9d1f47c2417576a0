package spool_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// inFolder returns the names of the files in a folder that contain text.
func inFolder(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			names = append(names, f.Name())
		}
	}
	return names
}

// deliverHalf appends records, delivers those with an even number, and drops a dead letter. The delivered and dropped
// ones contain the text "secret".
func deliverHalf(t *testing.T, s *spool.Spool) (left []string) {
	t.Helper()
	for i := range 400 {
		text := fmt.Sprintf("secret %d %s", i, strings.Repeat("s", i*3))
		if i%2 == 1 {
			text = fmt.Sprintf("kept %d %s", i, strings.Repeat("k", i*3))
		}
		seq := appendAll(t, s, text)
		if i%2 == 1 {
			left = append(left, fmt.Sprintf("%d:%s", seq, text))
			continue
		}
		if i == 100 {
			if err := s.Bury(t.Context(), spool.Dead{Seq: seq, Reason: "secret reason"}); err != nil {
				t.Fatal(err)
			}
			if n, err := s.Drop(t.Context(), 0); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			continue
		}
		s.Done(seq)
	}
	return left
}

func checkScrubbed(t *testing.T, s *spool.Spool, dir string, left []string) {
	t.Helper()
	if names := inFolder(t, dir, "secret"); names != nil {
		t.Errorf("got delivered records in %v, want none", names)
	}
	if got := all(t, s); strings.Join(got, "\n") != strings.Join(left, "\n") {
		t.Errorf("%d records are left, want %d", len(got), len(left))
	}
}

// TestScrub checks that after Scrub the file has no delivered or dropped record, and all others.
func TestScrub(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, spool.Options{NoSync: true})
	left := deliverHalf(t, s)
	if inFolder(t, dir, "secret") == nil {
		t.Fatal("the files do not contain the records before Scrub; the test looks at the wrong bytes")
	}
	if err := s.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkScrubbed(t, s, dir, left)
	if seq := appendAll(t, s, "more"); seq != 400 {
		t.Errorf("next record: got sequence number %d", seq)
	}
	before := statOpen(t, filepath.Join(dir, "journal.db"))
	if err := s.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(filepath.Join(dir, "journal.db")); err != nil || !os.SameFile(before, after) {
		t.Errorf("Scrub rewrote a journal without delivered records (%v)", err)
	}
	s = reopen(t, s, dir, spool.Options{NoSync: true})
	checkScrubbed(t, s, dir, append(left, "400:more"))
}

// TestScrubWhenIdle checks that the spool scrubs in the background when nothing is written for a while, on Close, and
// after a crash.
func TestScrubWhenIdle(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir, spool.Options{NoSync: true})
		left := deliverHalf(t, s)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		checkScrubbed(t, s, dir, left)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
	s := open(t, dir, spool.Options{NoSync: true})
	left := all(t, s)
	s.Done(appendAll(t, s, "secret"))
	s = reopen(t, s, dir, spool.Options{NoSync: true})
	checkScrubbed(t, s, dir, left)
}

// TestScrubWithoutItsCopy checks that, if the copy cannot be written, the file stays unchanged and the journal
// continues.
func TestScrubWithoutItsCopy(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, spool.Options{NoSync: true})
	left := deliverHalf(t, s)
	if err := os.Mkdir(filepath.Join(dir, "journal.tmp"), 0o700); err != nil { // takes the copy's name
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "journal.tmp", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Scrub(t.Context()); err == nil || errors.Is(err, spool.ErrFailed) {
		t.Errorf("got %v, want the file system's error", err)
	}
	if got := all(t, s); len(got) != len(left) {
		t.Errorf("%d records are left, want %d", len(got), len(left))
	}
	if err := os.RemoveAll(filepath.Join(dir, "journal.tmp")); err != nil {
		t.Fatal(err)
	}
	if err := s.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkScrubbed(t, s, dir, left)
}

// TestScrubAfterAShrink checks that Scrub also removes delivered records that remain after the file shrank in the
// background, in blocks with other records.
func TestScrubAfterAShrink(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir, spool.Shrinking(spool.Options{NoSync: true}, 8<<20))
		left := deliverHalf(t, s)
		time.Sleep(time.Second) // by then the marks are in the file
		var large []uint64
		for range 40 {
			large = append(large, appendAll(t, s, strings.Repeat("x", 1<<20)))
		}
		s.Done(large...)
		for _, text := range []string{"more", "and more"} {
			left = append(left, fmt.Sprintf("%d:%s", appendAll(t, s, text), text))
		}
		if err := s.Scrub(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkScrubbed(t, s, dir, left)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestNoScrubWithoutNeed checks that a scrubbed journal is not rewritten however often it is opened and closed, and
// that it is rewritten as soon as one of its records is done.
func TestNoScrubWithoutNeed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, spool.Options{NoSync: true})
	left := deliverHalf(t, s)
	s = reopen(t, s, dir, spool.Options{NoSync: true})
	name := filepath.Join(dir, "journal.db")
	before := statOpen(t, name)
	for range 3 {
		s = reopen(t, s, dir, spool.Options{NoSync: true})
		if !os.SameFile(before, statOpen(t, name)) {
			t.Fatal("Close rewrote a journal without delivered records")
		}
	}
	s.Done(appendAll(t, s, "secret"))
	s = reopen(t, s, dir, spool.Options{NoSync: true})
	checkScrubbed(t, s, dir, left)
	// After a crash the file's contents are unknown, so it counts as not scrubbed.
	s.Done(appendAll(t, s, "secret"))
	appendAll(t, s, "more") // also writes the mark
	crashed := t.TempDir()
	for _, name := range []string{"journal.db", "lock"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(crashed, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again := reopen(t, open(t, crashed, spool.Options{NoSync: true}), crashed, spool.Options{NoSync: true})
	if names := inFolder(t, crashed, "secret"); names != nil {
		t.Errorf("after a crash: got delivered records in %v, want none", names)
	}
	if got := all(t, again); len(got) != len(left)+1 {
		t.Errorf("%d records are left, want %d", len(got), len(left)+1)
	}
}

// TestScrubIsTriedAgain checks that a failed background scrub is tried again, even if nothing is written meanwhile.
func TestScrubIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir, spool.Options{NoSync: true})
		left := deliverHalf(t, s)
		taken := filepath.Join(dir, "journal.tmp") // the copy's name
		if err := os.MkdirAll(filepath.Join(taken, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if data, err := os.ReadFile(filepath.Join(dir, "journal.db")); err != nil || !bytes.Contains(data, []byte("secret")) {
			t.Fatal("got a successful scrub, want it to fail first")
		}
		if err := os.RemoveAll(taken); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		checkScrubbed(t, s, dir, left)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFolderSyncFails checks that no more records are acknowledged if it is unknown whether the new file or the old one
// would remain after a crash: a record could be in the file that is lost.
func TestFolderSyncFails(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("the disk failed")
	var fail atomic.Bool
	o := spool.FailingFolderSync(spool.Options{NoSync: true}, func() error {
		if fail.Load() {
			return broken
		}
		return nil
	})
	s := open(t, dir, o)
	left := deliverHalf(t, s)
	fail.Store(true)
	if err := s.Scrub(t.Context()); !errors.Is(err, broken) || !errors.Is(err, spool.ErrFailed) {
		t.Errorf("Scrub: got %v, want ErrFailed and the cause", err)
	}
	if _, err := s.Append(t.Context(), [][]byte{[]byte("more")}); !errors.Is(err, spool.ErrFailed) {
		t.Errorf("append of a record that may be lost: got %v, want an error", err)
	}
	if err := s.Close(); !errors.Is(err, broken) {
		t.Errorf("Close: got %v", err)
	}
	fail.Store(false)
	s = open(t, dir, spool.Options{NoSync: true})
	if got := all(t, s); len(got) != len(left) {
		t.Errorf("%d records are left, want %d", len(got), len(left))
	}
}
