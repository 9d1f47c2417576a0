package engine_test

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// unlocked is a file system without locks: those of the one in memory can hang when it is cloned meanwhile.
type unlocked struct{ *vfs.MemFS }

func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Whatever part of the folder's entries and files a crash keeps while an engine opens, works or closes, the folder opens.
func TestCrashWhileOpening(t *testing.T) {
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
				t.Fatalf("seed %d: after a crash the folder, with %q, does not open: %v", seed, names, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// pointers notes the manifests that were not durable when Pebble pointed to them.
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

// A crash may keep the pointer to a manifest and lose the manifest, where the folder was not synced in between.
func TestManifestBeforeItsPointer(t *testing.T) {
	fs := &pointers{unlocked: unlocked{vfs.NewCrashableMem()}}
	r := open(t, engine.Options{Dir: "db", FS: fs})
	r.create(t)
	reopen(t, r, engine.Options{Dir: "db", FS: fs})
	if fs.seen == 0 || len(fs.early) > 0 {
		t.Errorf("of %d pointers to manifests, %q were made before the manifest was durable", fs.seen, fs.early)
	}
}
