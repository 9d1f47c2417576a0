package spool_test

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

var damages = flag.Int("crash.damage", 80, "how many files are damaged")

// sound creates a valid journal that uses every table, and closes it. It returns its file, its lock file and its
// contents.
func newValidJournal(t *testing.T, o spool.Options) (file, lock []byte, holds string) {
	t.Helper()
	r := rand.New(rand.NewPCG(*seed, 5))
	dir := t.TempDir()
	s := open(t, dir, o)
	for range 60 {
		texts := make([]string, 1+r.IntN(60))
		for i := range texts {
			texts[i] = text(r)
		}
		first := appendAll(t, s, texts...)
		for i := range texts {
			if r.IntN(3) == 0 {
				s.Done(first + uint64(i))
			}
		}
		if r.IntN(5) == 0 {
			if err := s.Bury(t.Context(), spool.Dead{Seq: first, Reason: fmt.Sprint("refused ", first)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range uint64(1000) {
		if i%100 != 0 {
			s.Done(i)
		}
	}
	for i := range 30 {
		if err := s.SetMeta(t.Context(), fmt.Sprint("meta", i), []byte(text(r))); err != nil {
			t.Fatal(err)
		}
	}
	holds = contentsOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "journal.db"))
	if err == nil {
		lock, err = os.ReadFile(filepath.Join(dir, "lock"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return file, lock, holds
}

// look opens a file and compares it with the allowed contents, also after some writes.
func openDamaged(t *testing.T, file, lock []byte, o spool.Options, holds ...string) (reported, wrong error) {
	t.Helper()
	dir := folderOf(t, file, lock)
	defer os.RemoveAll(dir) // long runs would fill the disk
	s, err := spool.Open(dir, o)
	if err != nil {
		return err, nil
	}
	if got := contentsOf(t, s); !slices.Contains(holds, got) {
		return nil, errors.Join(errors.New("the contents are wrong"), s.Close())
	}
	for i := range 3 {
		if _, err := s.Append(t.Context(), [][]byte{make([]byte, 3000), {byte(i)}}); err != nil {
			return errors.Join(err, s.Close()), nil
		}
	}
	list := all(t, s)
	if err := s.Close(); err != nil {
		return err, nil
	}
	if s, err = spool.Open(dir, o); err != nil {
		return nil, fmt.Errorf("the first Open succeeds, the second fails: %w", err)
	}
	if got := all(t, s); !slices.Equal(got, list) || len(list) < 6 {
		wrong = errors.New("the contents are wrong after some appends")
	}
	return nil, errors.Join(wrong, s.Close())
}

// newest returns the offset of the newer meta page.
func newest(file []byte) int {
	if binary.NativeEndian.Uint64(file[page+16+48:]) > binary.NativeEndian.Uint64(file[16+48:]) {
		return page
	}
	return 0
}

// freelist returns the offset of the list of free pages.
func freelist(file []byte) int {
	return int(binary.NativeEndian.Uint64(file[newest(file)+16+32:])) * page
}

// A commit with a torn meta page was not acknowledged: the journal opens without it. The next commit repairs the page.
// A torn older meta page loses nothing.
func TestTornMetaPage(t *testing.T) {
	o := spool.Options{NoSync: true}
	dir := t.TempDir()
	s := open(t, dir, o)
	name := filepath.Join(dir, "journal.db")
	read := func() []byte {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	appendAll(t, s, "acknowledged")
	before, was := read(), contentsOf(t, s)
	appendAll(t, s, "torn")
	file, holds := read(), contentsOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	at := newest(file)
	for _, bytes := range []int{17, 20, 40, 60, 79, 512, page} {
		torn := slices.Clone(file)
		copy(torn[at:], before[at:at+page]) // the old page, except its beginning
		copy(torn[at:], file[at:at+min(bytes, 72)])
		if bytes >= 512 {
			clear(torn[at : at+bytes])
		}
		if reported, wrong := openDamaged(t, torn, nil, o, was, holds); reported != nil || wrong != nil {
			t.Errorf("the newer page, torn after %d bytes: %v, %v", bytes, reported, wrong)
		}
		older := slices.Clone(file)
		clear(older[page-at : page-at+bytes])
		if reported, wrong := openDamaged(t, older, nil, o, holds); reported != nil || wrong != nil {
			t.Errorf("%d zeros in the older page: %v, %v", bytes, reported, wrong)
		}
		clear(older[:2*page])
		if reported, wrong := openDamaged(t, older, nil, o, holds); !errors.Is(reported, spool.ErrDamaged) || wrong != nil {
			t.Errorf("both pages lost: %v, %v", reported, wrong)
		}
	}
}

// Open finds a page that refers to itself before bbolt loops on it forever.
func TestPagesInACircle(t *testing.T) {
	o := spool.Options{NoSync: true}
	file, lock, holds := newValidJournal(t, o)
	circles := 0
	for at := 2 * page; at < len(file); at += page {
		if binary.NativeEndian.Uint64(file[at:]) != uint64(at/page) || binary.NativeEndian.Uint16(file[at+8:]) != 1 {
			continue
		}
		bad := slices.Clone(file)
		binary.NativeEndian.PutUint64(bad[at+16+8:], uint64(at/page)) // the first child
		switch reported, wrong := openDamaged(t, bad, lock, o, holds); {
		case wrong != nil:
			t.Errorf("page %d refers to itself: got %v", at/page, wrong)
		case errors.Is(reported, spool.ErrDamaged):
			circles++
		}
	}
	if circles == 0 {
		t.Error("found no used page with children, so the test shows nothing")
	}
}

// If any bit of the file of a closed journal is flipped, or the file is cut anywhere, Open reports it or all records
// are there.
func TestDamage(t *testing.T) {
	o := spool.Options{NoSync: true}
	file, lock, holds := newValidJournal(t, o)
	if reported, wrong := openDamaged(t, file, lock, o, holds); reported != nil || wrong != nil {
		t.Fatalf("the undamaged copy: %v, %v", reported, wrong)
	}
	r := rand.New(rand.NewPCG(*seed, 6))
	outcomes := map[string]int{}
	try := func(what string, file []byte) {
		reported, wrong := openDamaged(t, file, lock, o, holds)
		kind, _, _ := strings.Cut(what, " ")
		switch {
		case wrong != nil:
			t.Errorf("%s: %v", what, wrong)
		case reported == nil:
			outcomes[kind+" harmless"]++
		case !errors.Is(reported, spool.ErrDamaged) && !errors.Is(reported, spool.ErrVersion):
			t.Errorf("%s: reported as another error than damage: %v", what, reported)
		default:
			outcomes[kind+" reported"]++
		}
	}
	free := freelist(file)
	for i := range *damages {
		at := r.IntN(len(file))
		switch i % 5 {
		case 0: // The page's structure.
			at = at/page*page + r.IntN(64)
		case 1: // The meta pages.
			at = r.IntN(2)*page + 16 + r.IntN(64)
		case 2: // The number of a page's entries.
			at = at/page*page + 10 + r.IntN(2)
		case 3: // The list of free pages.
			at = free + r.IntN(200)
		}
		bad := slices.Clone(file)
		bad[at] ^= 1 << r.IntN(8)
		try(fmt.Sprintf("flip at byte %d of %d", at, len(file)), bad)
		if i%10 == 0 {
			n := r.IntN(len(file))
			try(fmt.Sprintf("cut after %d bytes of %d", n, len(file)), file[:n])
			// A page that was never written, or an old page.
			lost := slices.Clone(file)
			from, to := r.IntN(len(file)/page)*page, r.IntN(len(file)/page)*page
			copy(lost[to:to+page], lost[from:from+page])
			try(fmt.Sprintf("copy of page %d to %d", from/page, to/page), lost)
			clear(lost[to : to+page])
			try(fmt.Sprintf("zeros in page %d", to/page), lost)
		}
	}
	t.Log(outcomes)
}

// If a page's entry count is one too small, Open reports it and does not return a shorter journal.
func TestLostEntries(t *testing.T) {
	o := spool.Options{NoSync: true}
	file, lock, holds := newValidJournal(t, o)
	reports := 0
	for at := 2 * page; at < len(file); at += page {
		head := file[at:]
		n := binary.NativeEndian.Uint16(head[10:])
		if binary.NativeEndian.Uint64(head) != uint64(at/page) || binary.NativeEndian.Uint16(head[8:]) != 2 || n == 0 {
			continue
		}
		bad := slices.Clone(file)
		binary.NativeEndian.PutUint16(bad[at+10:], n-1)
		switch reported, wrong := openDamaged(t, bad, lock, o, holds); {
		case wrong != nil:
			t.Errorf("page %d without its last entry: got %v", at/page, wrong)
		case errors.Is(reported, spool.ErrDamaged):
			reports++
		}
	}
	if reports < 10 {
		t.Errorf("found only %d pages with entries", reports)
	}
}

// If the file is damaged while it is open, calls return errors and do not panic, and Close still ends.
func TestDamageWhileOpen(t *testing.T) {
	o := spool.Shrinking(spool.Options{NoSync: true}, 1<<20)
	file, _, holds := newValidJournal(t, o)
	want := map[string]bool{}
	for line := range strings.Lines(holds) {
		want[strings.TrimSuffix(line, "\n")] = true
	}
	r := rand.New(rand.NewPCG(*seed, 7))
	outcomes := map[bool]int{}
	for i := range *damages / 5 {
		dir := t.TempDir()
		name := filepath.Join(dir, "journal.db")
		if err := os.WriteFile(name, file, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := spool.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		damageFile(t, name, r, i)
		var met error
		note := func(err error) {
			if err != nil && met == nil {
				met = err
			}
			if err != nil && !errors.Is(err, spool.ErrDamaged) && !errors.Is(err, spool.ErrFailed) && !errors.Is(err, spool.ErrUnsure) && !errors.Is(err, spool.ErrVersion) {
				t.Errorf("round %d of -spool.seed=%d: reported as another error than damage: %v", i, *seed, err)
			}
		}
		_, err = s.Append(t.Context(), [][]byte{make([]byte, 10000)})
		note(err)
		for from := uint64(0); ; {
			list, err := s.Read(t.Context(), from, 100, 1<<20)
			note(err)
			if len(list) == 0 {
				break
			}
			for _, rec := range list {
				from = rec.Seq + 1
				if text := fmt.Sprintf("%d:%s", rec.Seq, rec.Data); !want[text] && len(rec.Data) != 10000 {
					t.Errorf("round %d of -spool.seed=%d: returned a record that was never stored: %.60q", i, *seed, text)
				}
				s.Done(rec.Seq)
			}
		}
		for _, err := range s.Dead(t.Context()) {
			note(err)
		}
		_, err = s.Append(t.Context(), [][]byte{{1}})
		note(err)
		note(s.Close())
		outcomes[met != nil]++
	}
	t.Logf("%d reported, %d harmless", outcomes[true], outcomes[false])
}

// hurt damages a file in place.
func damageFile(t *testing.T, name string, r *rand.Rand, how int) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	switch how % 4 {
	case 0:
		err = f.Truncate(r.Int64N(info.Size()))
	case 1:
		err = f.Truncate(r.Int64N(4) * page)
	default:
		for range 20 {
			junk := make([]byte, 1+r.IntN(200))
			for i := range junk {
				junk[i] = byte(r.Uint32())
			}
			if _, err = f.WriteAt(junk, r.Int64N(info.Size()/page)*page); err != nil {
				break
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
