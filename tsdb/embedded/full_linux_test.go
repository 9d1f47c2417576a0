package embedded_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/diskerr"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

var blobs = tsdb.MustDefine("blobs", tsdb.Key("device"), codec.Bytes(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds})

// disk returns a folder on its own file system.
func disk(t *testing.T, options string, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options+",mode=700"); err != nil {
		t.Skipf("cannot mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func used(t *testing.T, dir string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Blocks-s.Bfree) * int64(s.Bsize)
}

func blob(n int) []byte {
	value := make([]byte, 0, 8<<10)
	for x := uint64(n)*2654435761 + 1; len(value) < cap(value); {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		value = binary.LittleEndian.AppendUint64(value, x)
	}
	return value
}

// A full disk fails writes and Open at once, with the reason. Acknowledged points are there when the disk has space
// again, and attempts to open the folder do not use up the space that becomes free.
func TestFullDisk(t *testing.T) {
	root := disk(t, "size=48m", 0)
	dir, filler := filepath.Join(root, "store"), filepath.Join(root, "filler")
	if err := os.WriteFile(filler, make([]byte, 24<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), blobs); err != nil {
		t.Fatal(err)
	}
	repo := blobs.For(store, acme)
	stored := 0
	for ; stored < 10_000; stored++ {
		if err = repo.Put(t.Context(), roof, noon.Add(time.Duration(stored)*time.Second), blob(stored)); err != nil {
			break
		}
		// The folder's files, including the space preallocated for logs.
		if stored == 600 {
			if held, size := used(t, root)-24<<20, folderSize(t, dir); held > size+3<<20 {
				t.Errorf("files of %d bytes use %d bytes of the disk", size, held)
			}
		}
	}
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("after %d points, a write to a full disk: %v, want the reason", stored, err)
	}
	if err := repo.Put(t.Context(), roof, noon, blob(0)); err == nil {
		t.Error("a write after a failed one succeeds")
	}
	_ = store.Close() // reports the failure
	eat := func() {
		file, err := os.OpenFile(filler, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = file.Write(make([]byte, 4096))
		}
		file.Close()
	}
	eat()
	size := folderSize(t, dir)
	for range 3 {
		_, err := embedded.Open(t.Context(), dir)
		if !errors.Is(err, diskerr.ErrStorage) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("Open on a full disk: %v, want ErrStorage and ENOSPC", err)
		}
		// A few pages become free each time, which is not enough.
		if err := os.Truncate(filler, used(t, root)-size-64<<10); err != nil {
			t.Fatal(err)
		}
		if got := folderSize(t, dir); got > size+128<<10 {
			t.Errorf("a failed Open makes the folder grow from %d to %d bytes", size, got)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	store, err = embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatalf("Open after space was freed: %v", err)
	}
	defer store.Close()
	n := 0
	for p, err := range blobs.For(store, acme).Range(t.Context(), roof, tsdb.Since(noon)) {
		if err != nil {
			t.Fatal(err)
		}
		if string(p.Value) == string(blob(int(p.Time.Sub(noon)/time.Second))) {
			n++
		}
	}
	if n < stored {
		t.Errorf("%d points were acknowledged, %d are stored", stored, n)
	}
	t.Logf("%d points", n)
	if err := blobs.For(store, acme).Put(t.Context(), roof, noon, blob(0)); err != nil {
		t.Errorf("write after space was freed: %v", err)
	}
}

// The error of Open names a disk that cannot be written.
func TestReadOnlyDisk(t *testing.T) {
	dir := disk(t, "size=48m", 0)
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=48m,mode=700"); err != nil {
		t.Skip(err)
	}
	if _, err := embedded.Open(t.Context(), dir); !errors.Is(err, diskerr.ErrStorage) || !errors.Is(err, syscall.EROFS) {
		t.Errorf("Open on a read-only disk: %v, want ErrStorage and EROFS", err)
	}
}

// A hanging disk does not block Open longer than its context.
func TestOpenEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "TIDEMARK") // the first file that Open reads: it blocks until somebody writes to it
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := embedded.Open(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open on a disk that hangs: %v, want DeadlineExceeded", err)
	}
	release, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	release.Close()
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	for {
		store, err := embedded.Open(t.Context(), dir)
		if err == nil {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, tsdb.ErrLocked) {
			t.Fatalf("Open after one whose context ended: %v", err)
		}
		time.Sleep(time.Millisecond) // the abandoned Open is still ending
	}
}

// A backup or a copy that finds no space leaves nothing behind, and takes no journal from another copy. The folder that
// is backed up works on.
func TestBackupFullDisk(t *testing.T) {
	root, small := t.TempDir(), disk(t, "size=256k", 0)
	store := opened(t, filepath.Join(root, "data"))
	if err := store.Ensure(t.Context(), blobs); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := blobs.For(store, acme).Put(t.Context(), tsdb.NewEntity("a"), noon.Add(time.Duration(i)*time.Second), blob(i)); err != nil {
			t.Fatal(err)
		}
	}
	w := journaled(t, store, filepath.Join(root, "journal"), 0, 1)
	defer w.Close(t.Context())
	if _, err := store.Backup(t.Context(), filepath.Join(small, "backup")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a backup on a full disk: %v", err)
	}
	if _, err := store.Backup(t.Context(), filepath.Join(root, "backup")); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.RestoreBackup(t.Context(), filepath.Join(root, "backup"), filepath.Join(small, "copy"), filepath.Join(root, "journals")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a copy on a full disk: %v", err)
	}
	for _, dir := range []string{small, filepath.Join(root, "journals")} {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s has %v", dir, left)
		}
	}
	if _, err := embedded.RestoreBackup(t.Context(), filepath.Join(root, "backup"), filepath.Join(root, "copy"), filepath.Join(root, "journals")); err != nil {
		t.Error(err)
	}
	put(t, store, 1)
	latest(t, store, 1)
}
