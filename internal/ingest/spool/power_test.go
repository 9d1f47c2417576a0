package spool_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

const page = 4096

// A machine that fails loses any part of what was not synced. A commit writes its pages, and one of the two meta pages,
// which makes the commit visible, and is then synced. The test compares the file before and after each commit; of the
// difference, any part may have been written when the machine fails.
func TestPowerLoss(t *testing.T) {
	testkit.Plain(t)
	synctest.Test(t, func(t *testing.T) { // A clock that stands still keeps marks from getting their own commit.
		r := rand.New(rand.NewPCG(*seed, 4))
		dir, o := t.TempDir(), spool.Options{NoSync: true}
		s := open(t, dir, o)
		file := filepath.Join(dir, "journal.db")
		read := func() []byte {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		parts, undone := 0, 0
		for step := range 3 * *rounds {
			before := read()
			switch r.IntN(5) {
			case 0:
				if err := s.SetMeta(t.Context(), "a", []byte(text(r))); err != nil {
					t.Fatal(err)
				}
			case 1:
				if next := s.Stats().Next; next > 0 {
					if err := s.Bury(t.Context(), spool.Dead{Seq: r.Uint64N(next)}); err != nil {
						t.Fatal(err)
					}
				}
			default:
				texts := make([]string, 1+r.IntN(100))
				for i := range texts {
					texts[i] = text(r)
				}
				appendAll(t, s, texts...)
			}
			after := read()
			was, now := contents(t, before, o), contents(t, after, o)
			for part := range 4 {
				torn := slices.Clone(after[:max(len(before), r.IntN(2)*len(after))])
				copy(torn, before)
				most := 1 << r.IntN(8)                   // on average one sector in most+1 is missing
				for at := 0; at < len(torn); at += 512 { // A sector is written completely or not at all.
					if r.IntN(most+1) > 0 || at < 2*page && part > 0 {
						copy(torn[at:at+512], after[at:])
					}
				}
				switch got := contents(t, torn, o); {
				case got != was && got != now:
					t.Fatalf("step %d of -spool.seed=%d: part of a commit is visible, or the previous commit is gone", step, *seed)
				case got == was && was != now && bytes.Equal(torn[:2*page], after[:2*page]):
					undone++
				}
				if part == 3 {
					if reported, wrong := openDamaged(t, torn, nil, o, was, now); reported != nil || wrong != nil {
						t.Fatalf("step %d of -spool.seed=%d: after a torn commit: %v, %v", step, *seed, reported, wrong)
					}
				}
				parts++
			}
			written := slices.Clone(after)
			copy(written, before[:2*page])
			if got := contents(t, written, o); got != was {
				t.Fatalf("step %d of -spool.seed=%d: a commit is visible before its meta page is written", step, *seed)
			}
			first, second := bytes.Equal(before[:page], after[:page]), bytes.Equal(before[page:2*page], after[page:2*page])
			if !bytes.Equal(before, after) && first == second {
				t.Fatalf("step %d of -spool.seed=%d: a commit did not change exactly one of the two meta pages", step, *seed)
			}
			// If a page of the last commit is missing in a journal that was closed, Open reports it, unless the page
			// changes no contents.
			for at := 2 * page; at < len(before); at += page {
				if r.IntN(2) > 0 || bytes.Equal(before[at:at+page], after[at:at+page]) {
					continue
				}
				lost := slices.Clone(after)
				copy(lost[at:], before[at:at+page])
				if got, err := tryContents(t, lost, closedLock(s, after), o); err == nil && got != now || err != nil && !errors.Is(err, spool.ErrDamaged) {
					t.Fatalf("step %d of -spool.seed=%d: page %d of the commit is lost, but the error is: %v", step, *seed, at/page, err)
				}
			}
			for range r.IntN(100) {
				s.Done(r.Uint64N(s.Stats().Next + 1))
			}
		}
		t.Logf("%d commits cut at %d places; %d were visible and not complete", 3**rounds, parts, undone)
		if undone == 0 {
			t.Error("no commit was visible and not complete")
		}
	})
}

// All records of a small journal fit into one page. Open does not accept an older version of that page, if the journal
// was closed; otherwise the commit looks torn, and the one before counts.
func TestOldPages(t *testing.T) {
	dir, o := t.TempDir(), spool.Options{NoSync: true}
	s := open(t, dir, o)
	reported := 0
	for step := range 12 {
		before, err := os.ReadFile(filepath.Join(dir, "journal.db"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetMeta(t.Context(), "step", fmt.Append(nil, step)); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(filepath.Join(dir, "journal.db"))
		if err != nil {
			t.Fatal(err)
		}
		was, now := contents(t, before, o), contents(t, after, o)
		for at := 2 * page; at < len(before); at += page {
			if bytes.Equal(before[at:at+page], after[at:at+page]) {
				continue
			}
			old := slices.Clone(after)
			copy(old[at:], before[at:at+page])
			if got := contents(t, old, o); got != was && got != now {
				t.Errorf("step %d: page %d is from an older commit, and the contents are those of no commit", step, at/page)
			}
			switch got, err := tryContents(t, old, closedLock(s, after), o); {
			case err == nil && got != now:
				t.Errorf("step %d: page %d is from an older commit, and no error is reported", step, at/page)
			case errors.Is(err, spool.ErrDamaged):
				reported++
			case err != nil:
				t.Error(err)
			}
		}
	}
	if reported == 0 {
		t.Error("no lost page was found")
	}
}

// contents returns all that a file holds.
func contents(t *testing.T, file []byte, o spool.Options) string {
	t.Helper()
	out, err := tryContents(t, file, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tryContents is contents for a file that may be damaged, with a lock file or without one.
func tryContents(t *testing.T, file, lock []byte, o spool.Options) (string, error) {
	t.Helper()
	dir := folderOf(t, file, lock)
	defer os.RemoveAll(dir) // long runs would fill the disk
	s, err := spool.Open(dir, o)
	if err != nil {
		return "", err
	}
	defer s.Close()
	return contentsOf(t, s), nil
}

// folderOf makes a folder with a journal's file, and with a lock file unless lock is nil.
func folderOf(t *testing.T, file, lock []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	err := os.WriteFile(filepath.Join(dir, "journal.db"), file, 0o600)
	if err == nil && lock != nil {
		err = os.WriteFile(filepath.Join(dir, "lock"), lock, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// closedLock returns the lock file that Close leaves beside a journal's file.
func closedLock(s *spool.Spool, file []byte) []byte {
	return fmt.Appendf(nil, "%s\nclosed at %d\n", s.Stream(), binary.NativeEndian.Uint64(file[newest(file)+16+48:]))
}

func contentsOf(t *testing.T, s *spool.Spool) string {
	t.Helper()
	var dead []string
	for _, d := range letters(t, s) {
		dead = append(dead, fmt.Sprintf("%d:%d:%s", d.ID, d.Seq, d.Data))
	}
	// After a crash Open raises the next number.
	return fmt.Sprintf("%d\n%s\n%s\n%q", s.Stats().Next%gap, strings.Join(all(t, s), "\n"), strings.Join(dead, "\n"), s.Metas())
}
