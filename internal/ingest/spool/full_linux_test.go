package spool_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// A full disk fails only appends: existing records can be read and delivered, and appends work again as soon as there
// is space.
func TestFullDisk(t *testing.T) {
	s := open(t, tiny(t), spool.Options{})
	exercise(t, s, func() {})
}

// The same for a file that may not grow: bbolt then fails earlier in a commit.
func TestFileMayNotGrow(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, spool.Options{})
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 8 << 20, Max: old.Max}); err != nil {
		t.Skip(err)
	}
	raise := func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Error(err)
		}
	}
	defer raise()
	exercise(t, s, raise)
}

// exercise fills a spool until its disk fails. raise makes more room on the disk; it is called if delivering does not
// free enough.
func exercise(t *testing.T, s *spool.Spool, raise func()) {
	t.Helper()
	records := make([][]byte, 50)
	for i := range records {
		records[i] = make([]byte, 1000)
	}
	n := uint64(0)
	var err error
	for ; n < 30_000; n += 50 {
		if _, err = s.Append(t.Context(), records); err != nil {
			break
		}
	}
	if err == nil || errors.Is(err, spool.ErrUnsure) || errors.Is(err, spool.ErrFailed) || errors.Is(err, spool.ErrDamaged) {
		t.Fatalf("append to a full disk: got %v", err)
	}
	t.Logf("full after %d records: %v", n, err)
	// Smaller commits may still fit into pages that the one before left free.
	for size := 50; size > 0; size /= 2 {
		for fails := 0; fails < 10; {
			if _, err := s.Append(t.Context(), records[:size]); err != nil {
				fails++
				continue
			}
			n += uint64(size)
		}
	}
	if st := s.Stats(); st.Next != n || st.Records != int(n) {
		t.Errorf("after %d acknowledged appends: got stats %+v", n, st)
	}
	if got := len(all(t, s)); got != int(n) {
		t.Errorf("got %d readable records, want %d", got, n)
	}
	for seq := range n / 2 {
		s.Done(seq)
	}
	raise()
	first, err := s.Append(t.Context(), records)
	if err != nil || first != n {
		t.Fatalf("append after space became free: got %d, %v; want %d", first, err, n)
	}
	for range 20 {
		if _, err := s.Append(t.Context(), records); err != nil {
			t.Fatalf("space that became free is not used again: %v", err)
		}
	}
}

// tiny returns a folder on a disk of 8 MiB.
func tiny(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,mode=700"); err != nil {
		t.Skipf("cannot mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// To remove one large record, bbolt rewrites its neighbours. On a full disk the spool removes such records one by one.
func TestLargeRecordsOnAFullDisk(t *testing.T) {
	s := open(t, tiny(t), spool.Options{})
	for size := 100 << 10; size > 50; size /= 2 {
		for {
			if _, err := s.Append(t.Context(), [][]byte{make([]byte, size)}); err != nil {
				break
			}
		}
	}
	for seq := uint64(1); seq < 20; seq += 4 {
		s.Done(seq)
	}
	if _, err := s.Append(t.Context(), [][]byte{make([]byte, 50<<10)}); err != nil {
		t.Errorf("the space of delivered records is not used again: %v", err)
	}
}

// If others filled the disk and the file has no free page, deleting the reserve file gives enough space to remove
// delivered records.
func TestReserve(t *testing.T) {
	dir := tiny(t)
	s := open(t, dir, spool.Options{})
	record := [][]byte{make([]byte, 20<<10)}
	for range 200 {
		if _, err := s.Append(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	for seq := range uint64(200) {
		if seq%13 != 0 {
			s.Done(seq)
		}
	}
	s = reopen(t, s, dir, spool.Shrinking(spool.Options{}, 1<<20))
	others, err := os.Create(filepath.Join(dir, "others"))
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	for err == nil {
		_, err = others.Write(make([]byte, 4096))
	}
	for range 100 {
		if _, err = s.Append(t.Context(), record); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("append to a full disk: got nil, want an error")
	}
	for seq := uint64(13); seq < 100; seq += 13 {
		s.Done(seq)
	}
	if _, err := s.Append(t.Context(), record); err != nil {
		t.Errorf("the space of delivered records is not used again: %v", err)
	}
}

// Open refuses a folder that it cannot write to, with the file system's own error.
func TestReadOnlyDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "size=1m,mode=700"); err != nil {
		t.Skipf("cannot mount a file system: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	if _, err := spool.Open(dir, spool.Options{}); !errors.Is(err, syscall.EROFS) || errors.Is(err, spool.ErrDamaged) {
		t.Errorf("folder on a read-only disk: got %v", err)
	}
	if _, err := spool.Open(dir+"/below", spool.Options{}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("folder that cannot be created: got %v", err)
	}
}
