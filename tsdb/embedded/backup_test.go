package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// blocked is a folder whose writes of many rows fail while it is blocked, so that a journal keeps its points.
type blocked struct{ atomic.Bool }

func (b *blocked) options(dir string) embedded.Options {
	return embedded.Options{Dir: dir, DialOptions: []grpc.DialOption{grpc.WithStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if b.Load() && strings.HasSuffix(method, "/MutateRows") {
				return nil, status.Error(codes.Unavailable, "blocked")
			}
			return next(ctx, desc, cc, method, opts...)
		})}}
}

// journaled puts points into a new journal, which keeps them.
func journaled(t *testing.T, store *tsdb.Store, dir string, from, n int) *tsdb.Writer {
	t.Helper()
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, n)
	for i := range n {
		err := temps.For(store, acme).Via(w).EnqueueFunc(t.Context(), roof, noon.Add(time.Duration(from+i)*time.Second), float64(from+i),
			func(o tsdb.Outcome) { done <- o.Err })
		if err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func closeNow(w *tsdb.Writer) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.Close(ctx) // leaves the points in the journal
}

// values returns the values of all points, which are their seconds.
func values(t *testing.T, store *tsdb.Store) (out []int) {
	t.Helper()
	for p, err := range temps.For(store, acme).Range(t.Context(), roof, tsdb.Interval{}) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Time != noon.Add(time.Duration(p.Value)*time.Second) {
			t.Errorf("the point at %v has the value %v", p.Time, p.Value)
		}
		out = append(out, int(p.Value))
	}
	return out
}

// TestBackup makes backups of a folder in use, whose writer has points in its journal. Each copy has its own points;
// exactly one delivers the journal.
func TestBackup(t *testing.T) {
	root := t.TempDir()
	var block blocked
	store, err := embedded.New(t.Context(), block.options(filepath.Join(root, "data")))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(t.Context(), temps); err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		put(t, store, n)
	}
	block.Store(true)
	w := journaled(t, store, filepath.Join(root, "journal"), 10, 5)
	defer closeNow(w)
	first, err := store.Backup(t.Context(), filepath.Join(root, "backups", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Journals) != 1 || first.Journals[0].Records != 5 || first.Journals[0].Dir != filepath.Join(root, "journal") || first.Journals[0].Stream != w.Stats().Journal.Stream {
		t.Errorf("the backup's journals are %+v; want 5 records of %s", first.Journals, filepath.Join(root, "journal"))
	}
	put(t, store, 100)
	second, err := store.Backup(t.Context(), filepath.Join(root, "backups", "2"))
	if err != nil {
		t.Fatal(err)
	}
	if second.Added >= first.Added || second.ID == first.ID {
		t.Errorf("the first backup added %d of %d bytes, the second %d of %d", first.Added, first.Bytes, second.Added, second.Bytes)
	}
	for _, name := range []string{"1", "2"} {
		b, err := embedded.VerifyBackup(t.Context(), filepath.Join(root, "backups", name))
		if err != nil || b.Dir != filepath.Join(root, "data") {
			t.Errorf("backup %s: %+v, %v", name, b, err)
		}
	}

	restored, err := embedded.RestoreBackup(t.Context(), filepath.Join(root, "backups", "1"), filepath.Join(root, "copy"), filepath.Join(root, "journals"))
	if err != nil || restored.ID != first.ID {
		t.Fatal(restored, err)
	}
	if _, err := embedded.RestoreBackup(t.Context(), filepath.Join(root, "backups", "1"), filepath.Join(root, "copy2"), filepath.Join(root, "journals2")); !errors.Is(err, embedded.ErrClaimed) {
		t.Errorf("the second copy gets the journals, too: %v", err)
	}
	if entries, _ := filepath.Glob(filepath.Join(root, "*2*")); len(entries) > 0 {
		t.Errorf("a failed restore leaves %v", entries)
	}
	if _, err := embedded.RestoreBackup(t.Context(), filepath.Join(root, "backups", "1"), filepath.Join(root, "copy2"), ""); err != nil {
		t.Error(err)
	}

	for name, delivers := range map[string]bool{"copy": true, "copy2": false} {
		copied := opened(t, filepath.Join(root, name))
		want := 10
		if delivers {
			want = 15
			w := journaled(t, copied, filepath.Join(root, "journals", "journal"), 0, 0)
			if err := w.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			if err := w.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if got := values(t, copied); len(got) != want {
			t.Errorf("%s has %d points, want %d", name, len(got), want)
		}
		again, err := copied.Backup(t.Context(), filepath.Join(root, "backups", "of "+name))
		if err != nil || again.CopyOf != first.ID {
			t.Errorf("a backup of %s is a copy of %q, %v; want %s", name, again.CopyOf, err, first.ID)
		}
	}
	if got := values(t, store); len(got) != 11 {
		t.Errorf("the folder itself has %d points, want 11", len(got))
	}
}

// TestWorkingFolderChanges: a store and a journal with relative names outlive a change of the working folder.
func TestWorkingFolderChanges(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	store := opened(t, "data")
	if err := store.Ensure(t.Context(), temps); err != nil {
		t.Fatal(err)
	}
	w := journaled(t, store, "journal", 0, 3)
	defer closeNow(w)
	t.Chdir(t.TempDir())
	b, err := store.Backup(t.Context(), filepath.Join(root, "backup"))
	if err != nil || b.Dir != filepath.Join(root, "data") || len(b.Journals) != 1 || b.Journals[0].Dir != filepath.Join(root, "journal") {
		t.Fatalf("the backup is %+v, %v", b, err)
	}
	if err := errors.Join(w.Flush(t.Context()), w.ScrubJournal(t.Context())); err != nil {
		t.Error(err)
	}
	if got := values(t, store); len(got) != 3 {
		t.Errorf("the folder has the points %v, want 3", got)
	}
}

// TestBackupRefuses calls with folders that exist, that are in the store's folder, or that are none.
func TestBackupRefuses(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	store := opened(t, dir)
	if _, err := store.Backup(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Backup(t.Context(), to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another: %v", err)
	}
	if _, err := store.Backup(t.Context(), filepath.Join(dir, "b")); err == nil || !strings.Contains(err.Error(), "outside") {
		t.Errorf("in the folder: %v", err)
	}
	if _, err := store.Backup(t.Context(), ""); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("without a name: %v", err)
	}
	if _, err := embedded.RestoreBackup(t.Context(), to, dir, ""); !errors.Is(err, fs.ErrExist) {
		t.Errorf("restored over a folder in use: %v", err)
	}
	if _, err := embedded.RestoreBackup(t.Context(), dir, to+"2", ""); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "is not a backup") {
		t.Errorf("restored from no backup: %v", err)
	}
	memory, err := embedded.New(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	if _, err := memory.Backup(t.Context(), to+"3"); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("in memory: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.HasPrefix(e.Name(), "checkpoint") {
			t.Errorf("the folder still has %s", e.Name())
		}
	}
}

// TestRestoreRefusesFolders restores to folders that cannot be made. A later restore gets the journals.
func TestRestoreRefusesFolders(t *testing.T) {
	root := t.TempDir()
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	store := opened(t, in("data"))
	w := journaled(t, store, in("journal"), 0, 0)
	defer w.Close(t.Context())
	if _, err := store.Backup(t.Context(), in("backup")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, journals, want string }{
		{"copy", "journal", "exists"},
		{"copy", "copy", "outside"},
		{"copy", "copy/journals", "outside"},
		{"journals/copy", "journals", "outside"},
	} {
		_, err := embedded.RestoreBackup(t.Context(), in("backup"), in(c.dir), in(c.journals))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("to %s with the journals in %s: %v", c.dir, c.journals, err)
		}
		if left, _ := os.ReadDir(root); len(left) != 3 {
			t.Errorf("to %s with the journals in %s: left %v", c.dir, c.journals, left)
		}
	}
	if _, err := embedded.RestoreBackup(t.Context(), in("backup"), in("copy"), in("journals")); err != nil {
		t.Error(err)
	}
}

// TestBackupAttached backs up the folder of another store, with the journals of both.
func TestBackupAttached(t *testing.T) {
	root := t.TempDir()
	var block blocked
	owner, err := embedded.New(t.Context(), block.options(filepath.Join(root, "data")))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if err := owner.Ensure(t.Context(), temps); err != nil {
		t.Fatal(err)
	}
	guest := attached(t, block.options(filepath.Join(root, "data")))
	put(t, owner, 0)
	block.Store(true)
	defer closeNow(journaled(t, owner, filepath.Join(root, "a", "journal"), 1, 2))
	defer closeNow(journaled(t, guest, filepath.Join(root, "b", "journal"), 3, 3))
	b, err := guest.Backup(t.Context(), filepath.Join(root, "backup"))
	if err != nil || len(b.Journals) != 2 {
		t.Fatalf("%+v, %v; want two journals", b, err)
	}
	if _, err := embedded.RestoreBackup(t.Context(), filepath.Join(root, "backup"), filepath.Join(root, "copy"), filepath.Join(root, "journals")); err != nil {
		t.Fatal(err)
	}
	copied := opened(t, filepath.Join(root, "copy"))
	entries, err := os.ReadDir(filepath.Join(root, "journals"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := journaled(t, copied, filepath.Join(root, "journals", e.Name()), 0, 0).Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	if got := values(t, copied); len(got) != 6 {
		t.Errorf("the copy has the points %v, want 0 to 5", got)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left, _ := filepath.Glob(filepath.Join(root, "data", "checkpoint*"))
		if len(left) == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the owner keeps %v", left)
		}
	}
}

// TestBackupAfterTakeOver backs up a folder whose owner was attached before, by that owner and by another store.
func TestBackupAfterTakeOver(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "data")
	first := opened(t, dir)
	owner := attached(t, embedded.Options{Dir: dir, TakeOver: true})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, owner, 0)
	guest := attached(t, embedded.Options{Dir: dir})
	defer closeNow(journaled(t, owner, filepath.Join(root, "journal"), 0, 0))
	for name, store := range map[string]*tsdb.Store{"owner": owner, "guest": guest} {
		if b, err := store.Backup(t.Context(), filepath.Join(root, name)); err != nil || len(b.Journals) != 1 {
			t.Errorf("by the %s: %d journals, %v; want the owner's", name, len(b.Journals), err)
		}
	}
}

// TestBackupStream sends a backup and a later one as streams, and damages the streams.
func TestBackupStream(t *testing.T) {
	root := t.TempDir()
	store := opened(t, filepath.Join(root, "data"))
	if err := store.Ensure(t.Context(), blobs); err != nil {
		t.Fatal(err)
	}
	fill := func(from, n int) {
		t.Helper()
		for i := range n {
			if err := blobs.For(store, acme).Put(t.Context(), tsdb.NewEntity("a"), noon.Add(time.Duration(from+i)*time.Second), blob(from+i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := func(name string) string { return filepath.Join(root, name) }
	var whole, rest bytes.Buffer
	fill(0, 200)
	if _, err := store.Backup(t.Context(), at("1")); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.PackBackup(t.Context(), at("1"), "", &whole); err != nil {
		t.Fatal(err)
	}
	fill(200, 20)
	if _, err := store.Backup(t.Context(), at("2")); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.PackBackup(t.Context(), at("2"), at("1"), &rest); err != nil {
		t.Fatal(err)
	}
	if rest.Len() > whole.Len()/2 {
		t.Errorf("the second stream has %d bytes, the first %d", rest.Len(), whole.Len())
	}
	if _, err := embedded.UnpackBackup(t.Context(), bytes.NewReader(whole.Bytes()), "", at("got1")); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.UnpackBackup(t.Context(), bytes.NewReader(rest.Bytes()), "", at("got2")); err == nil || !strings.Contains(err.Error(), "earlier backup") {
		t.Errorf("a stream against an earlier backup is whole: %v", err)
	}
	if _, err := embedded.UnpackBackup(t.Context(), bytes.NewReader(rest.Bytes()), at("got1"), at("got2")); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"got1": 200, "got2": 220} {
		if _, err := embedded.VerifyBackup(t.Context(), at(name)); err != nil {
			t.Error(err)
		}
		if _, err := embedded.RestoreBackup(t.Context(), at(name), at("of "+name), ""); err != nil {
			t.Fatal(err)
		}
		copied, i := opened(t, at("of "+name)), 0
		for p, err := range blobs.For(copied, acme).Range(t.Context(), tsdb.NewEntity("a"), tsdb.Interval{}, tsdb.OldestFirst) {
			if err != nil || !bytes.Equal(p.Value, blob(i)) {
				t.Fatalf("%s: point %d is wrong, %v", name, i, err)
			}
			i++
		}
		if i != n {
			t.Errorf("%s has %d points, want %d", name, i, n)
		}
	}
	for cut := range 20 {
		part := whole.Bytes()[:whole.Len()*cut/20]
		if _, err := embedded.UnpackBackup(t.Context(), bytes.NewReader(part), "", at("cut")); err == nil {
			t.Errorf("%d of %d bytes of a stream make a backup", len(part), whole.Len())
		}
		if _, err := os.Stat(at("cut")); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal("a damaged stream leaves a folder")
		}
	}
}

// TestBackupDamage changes or removes each file of a backup.
func TestBackupDamage(t *testing.T) {
	root := t.TempDir()
	store := opened(t, filepath.Join(root, "data"))
	w := journaled(t, store, filepath.Join(root, "journal"), 0, 3)
	defer w.Close(t.Context())
	dir := filepath.Join(root, "backup")
	if _, err := store.Backup(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "LOCK" {
			return err
		}
		files++
		was, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		changed := bytes.Clone(was)
		if len(changed) > 0 {
			changed[len(changed)/2] ^= 1
		} else {
			changed = []byte{0}
		}
		// A new file, because others share the old one.
		for _, text := range [][]byte{changed, nil} {
			if err := os.Remove(name); err != nil {
				return err
			}
			if text != nil {
				if err := os.WriteFile(name, text, 0o600); err != nil {
					return err
				}
			}
			if _, err := embedded.VerifyBackup(t.Context(), dir); err == nil {
				t.Errorf("nothing is wrong with %s", name)
			} else if rel, _ := filepath.Rel(dir, name); e.Name() != "BACKUP.json" && (!errors.Is(err, tsdb.ErrDamaged) || !strings.Contains(err.Error(), filepath.ToSlash(rel))) {
				t.Errorf("%s: %v", rel, err)
			}
			if e.Name() == "journal.json" { // a restored folder does not have it
				continue
			}
			if _, err := embedded.RestoreBackup(t.Context(), dir, filepath.Join(root, "copy"), filepath.Join(root, "journals")); err == nil {
				t.Errorf("a backup with damage in %s is restored", name)
			}
			if left, _ := filepath.Glob(filepath.Join(root, "copy*")); len(left) > 0 {
				t.Fatalf("a failed restore leaves %v", left)
			}
		}
		return os.WriteFile(name, was, 0o600)
	})
	if err != nil || files < 6 {
		t.Fatal(files, err)
	}
	if _, err := embedded.VerifyBackup(t.Context(), dir); err != nil {
		t.Error(err)
	}
}

// opened opens a folder until the test ends.
func opened(t *testing.T, dir string) *tsdb.Store {
	t.Helper()
	store := open(t, dir)
	t.Cleanup(func() { _ = store.Close() })
	return store
}
