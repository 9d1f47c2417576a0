package engine_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// unlocked is an in-memory file system without locks: the locks of vfs.MemFS can hang while it is cloned.
type unlocked struct{ *vfs.MemFS }

func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// A crash during Open, work or Close leaves a folder that opens, whichever directory entries and unsynced bytes
// survive.
func TestCrashWhileOpening(t *testing.T) {
	testkit.Plain(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		fs := vfs.NewCrashableMem()
		var clones []*vfs.MemFS
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Microsecond):
				}
				clones = append(clones, fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[r.IntN(3)], RNG: r}))
			}
		}()
		for i := range 3 {
			o := open(t, engine.Options{Dir: "db", FS: unlocked{fs}, MemTableBytes: 64 << 10})
			if i == 0 {
				o.create(t)
			}
			apply(t, o, string(rune('a'+i)), set("f", "q", 1000, "v"))
			o.disconnect(t)
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		<-done
		for _, clone := range clones {
			e, err := engine.Open(engine.Options{Dir: "db", FS: unlocked{clone}, GCInterval: -1})
			if err != nil {
				names, _ := clone.List("db")
				t.Fatalf("seed %d: Open after a crash: got %[3]v, want nil; the folder holds %[2]q", seed, names, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// pointers records manifests that were not durable when Pebble created the pointer to them.
type pointers struct {
	unlocked
	seen  int
	early []string
}

func (p *pointers) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if i := strings.Index(name, "MANIFEST-"); i >= 0 && strings.Contains(name, "marker.") {
		p.seen++
		clone := p.CrashClone(vfs.CrashCloneCfg{})
		if _, err := clone.Stat("db/" + name[i:]); err != nil {
			p.early = append(p.early, name)
		}
	}
	return p.MemFS.Create(name, category)
}

// A manifest is durable before the pointer to it. Otherwise a crash could keep the pointer and lose the manifest.
func TestManifestBeforeItsPointer(t *testing.T) {
	fs := &pointers{unlocked: unlocked{vfs.NewCrashableMem()}}
	r := open(t, engine.Options{Dir: "db", FS: fs})
	r.create(t)
	reopen(t, r, engine.Options{Dir: "db", FS: fs})
	if fs.seen == 0 || len(fs.early) > 0 {
		t.Errorf("got %d pointers to manifests, and %q created before their manifest was durable; want several, and none", fs.seen, fs.early)
	}
}

// Flushed logs are removed. So if the manifest is truncated and the record of a flush is lost, rows are lost, and Open
// must return ErrDamaged.
func TestTruncatedManifest(t *testing.T) {
	dir := t.TempDir()
	r := open(t, engine.Options{Dir: dir, MemTableBytes: 64 << 10})
	r.create(t)
	for i := range 400 { // in key order, so that no compaction rewrites table files
		apply(t, r, fmt.Sprintf("row%03d", i), set("f", "q", 1000, noise(i)))
	}
	r.disconnect(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	logs, err2 := filepath.Glob(filepath.Join(dir, "*.log"))
	if err := errors.Join(err, err2); err != nil || len(manifests) != 1 || len(logs) > 1 {
		t.Fatal(manifests, logs, err)
	}
	info, err := os.Stat(manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	for cut := info.Size() / 20; cut < info.Size(); cut += info.Size() / 20 {
		copied := t.TempDir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(copied, filepath.Base(manifests[0])), cut); err != nil {
			t.Fatal(err)
		}
		e, err := engine.Open(engine.Options{Dir: copied, GCInterval: -1})
		if errors.Is(err, engine.ErrDamaged) {
			continue
		}
		if err != nil {
			t.Errorf("with %d of %d bytes of the manifest: got %v, want ErrDamaged", cut, info.Size(), err)
			continue
		}
		r := dial(t, e)
		if got := len(dump(t, r, bigtable.InfiniteRange(""))); got != 400 {
			t.Errorf("with %d of %d bytes of the manifest: got %d rows, want 400 or ErrDamaged", cut, info.Size(), got)
		}
		r.disconnect(t)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Another program's database is refused before anything in it changes.
func TestForeignFolderIsUnchanged(t *testing.T) {
	dir := t.TempDir()
	o := &pebble.Options{FormatMajorVersion: pebble.FormatMinSupported, Logger: quietLogger{}}
	db, err := pebble.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("key"), nil, pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	files := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, fmt.Sprint(e.Name(), " ", info.Size()))
		}
		return names
	}
	before := files()
	if _, err := engine.Open(engine.Options{Dir: dir, GCInterval: -1}); !errors.Is(err, engine.ErrForeign) {
		t.Fatalf("got %v, want ErrForeign", err)
	}
	if after := files(); !slices.Equal(after, before) {
		t.Errorf("got files %q, before %q", after, before)
	}
}

type quietLogger struct{}

func (quietLogger) Infof(string, ...any)  {}
func (quietLogger) Errorf(string, ...any) {}
func (quietLogger) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
