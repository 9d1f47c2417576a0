package spool_test

import (
	"bytes"
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

// A machine that fails loses any part of what was not synced. bbolt syncs a commit's pages, then writes one of the two
// meta pages, which makes the commit visible, and syncs again. The test compares the file before and after each commit;
// of the difference, any part except the meta page may have been written when the machine fails.
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
		parts := 0
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
			for range 4 {
				torn := slices.Clone(after[:max(len(before), r.IntN(2)*len(after))])
				copy(torn, before)
				for at := 2 * page; at < len(torn); at += 512 { // A sector is written completely or not at all.
					if r.IntN(2) == 0 {
						copy(torn[at:at+512], after[at:])
					}
				}
				if got := contents(t, torn, o); got != was {
					t.Fatalf("step %d of -spool.seed=%d: part of a commit is visible, or the previous commit is gone", step, *seed)
				}
				parts++
			}
			// After the first sync, only the meta page may be missing.
			synced := slices.Clone(after)
			copy(synced, before[:2*page])
			if got := contents(t, synced, o); got != was {
				t.Fatalf("step %d of -spool.seed=%d: a commit is visible before its meta page is written", step, *seed)
			}
			first, second := bytes.Equal(before[:page], after[:page]), bytes.Equal(before[page:2*page], after[page:2*page])
			if !bytes.Equal(before, after) && first == second {
				t.Fatalf("step %d of -spool.seed=%d: a commit did not change exactly one of the two meta pages", step, *seed)
			}
			// If a page of an acknowledged commit is missing, Open reports it, unless the page changes no contents.
			for at := 2 * page; at < len(before); at += page {
				if r.IntN(2) > 0 || bytes.Equal(before[at:at+page], after[at:at+page]) {
					continue
				}
				lost := slices.Clone(after)
				copy(lost[at:], before[at:at+page])
				if got, err := tryContents(t, lost, o); err == nil && got != now || err != nil && !errors.Is(err, spool.ErrDamaged) {
					t.Fatalf("step %d of -spool.seed=%d: page %d of the commit is lost, but the error is: %v", step, *seed, at/page, err)
				}
			}
			for range r.IntN(100) {
				s.Done(r.Uint64N(s.Stats().Next + 1))
			}
		}
		t.Logf("%d commits cut at %d places", 3**rounds, parts)
	})
}

// All records of a small journal fit into one page. Open does not accept an older version of that page.
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
		now := contents(t, after, o)
		for at := 2 * page; at < len(before); at += page {
			if bytes.Equal(before[at:at+page], after[at:at+page]) {
				continue
			}
			old := slices.Clone(after)
			copy(old[at:], before[at:at+page])
			switch got, err := tryContents(t, old, o); {
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
	out, err := tryContents(t, file, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryContents(t *testing.T, file []byte, o spool.Options) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "journal.db"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := spool.Open(dir, o)
	if err != nil {
		return "", err
	}
	defer s.Close()
	return everything(t, s), nil
}

func everything(t *testing.T, s *spool.Spool) string {
	t.Helper()
	var dead []string
	for _, d := range letters(t, s) {
		dead = append(dead, fmt.Sprintf("%d:%d:%s", d.ID, d.Seq, d.Data))
	}
	return fmt.Sprintf("%d\n%s\n%s\n%q", s.Stats().Next, strings.Join(all(t, s), "\n"), strings.Join(dead, "\n"), s.Metas())
}
