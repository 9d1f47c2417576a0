package spool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// gap is how far an Open without a note of the last Close raises the next sequence number.
const gap = 1 << 32

// A commit may have been delivered before damage makes it look torn. The numbers of its records and of its dead letters
// are not used again, also if the journal is closed before anything is appended.
func TestNumbersOfALostCommit(t *testing.T) {
	dir, o := t.TempDir(), spool.Options{NoSync: true}
	name := filepath.Join(dir, "journal.db")
	s := open(t, dir, o)
	appendAll(t, s, "a")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, "b", "c")
	after, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	torn := append([]byte{}, after...)
	copy(torn[2*page:], before[2*page:]) // the meta page of the commit, without its other pages
	metaTorn := append([]byte{}, after...)
	clear(metaTorn[newest(after) : newest(after)+page])
	for what, file := range map[string][]byte{"a torn commit": torn, "a torn meta page": metaTorn, "a lost commit": before} {
		dir := folderOf(t, file, nil)
		s := open(t, dir, o)
		want(t, what+": records", all(t, s), []string{"0:a"})
		if got, dropped := s.Stats().Dropped, what != "a lost commit"; (got != 0) != dropped {
			t.Errorf("%s: commit %d is reported as dropped, want one: %v", what, got, dropped)
		}
		for range 2 {
			s = reopen(t, s, dir, o)
		}
		if seq := appendAll(t, s, "d"); seq != 1+gap {
			t.Errorf("%s: the next record has the number %d, want %d", what, seq, uint64(1+gap))
		}
		if err := s.Bury(t.Context(), spool.Dead{Seq: 1 + gap}); err != nil {
			t.Fatal(err)
		}
		for letter, err := range s.Dead(t.Context()) {
			if err != nil || letter.ID < gap {
				t.Errorf("%s: the next dead letter has the number %d, want at least %d (%v)", what, letter.ID, uint64(gap), err)
			}
		}
		s = reopen(t, s, dir, o)
		if s.Stats().Dropped != 0 {
			t.Errorf("%s: a second Open reports a dropped commit", what)
		}
		if seq := appendAll(t, s, "e"); seq != 2+gap {
			t.Errorf("%s: after Close the next record has the number %d, want %d", what, seq, uint64(2+gap))
		}
	}
}

// A closed journal whose note was cut has none: its text does not name another commit.
func TestCutNote(t *testing.T) {
	dir, o := t.TempDir(), spool.Options{NoSync: true}
	s := reopen(t, open(t, dir, o), dir, o) // A file that was scrubbed is not rewritten on Close.
	for range 12 {
		appendAll(t, s, "a")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(dir, "lock")
	text, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.TrimRight(string(text), "\n")
	if err := os.WriteFile(lock, []byte(cut[:len(cut)-1]), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := all(t, open(t, dir, o)); len(got) != 12 {
		t.Errorf("got %d records, want 12", len(got))
	}
}
