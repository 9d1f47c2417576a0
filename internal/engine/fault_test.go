package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// Pebble ends its process when a change of the manifest fails, since nobody knows whether the disk has it. The engine
// goes on, so it must not change the manifest again: with a change that is made twice, the folder does not open, or its
// next compaction panics.
func TestManifestChangesOnce(t *testing.T) {
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileSync} {
		for _, compacts := range []bool{false, true} {
			t.Run(fmt.Sprintf("operation %d, compaction %v", kind, compacts), func(t *testing.T) {
				testkit.OneOf(t, compacts)
				synctest.Test(t, func(t *testing.T) { failManifest(t, kind, compacts) })
			})
		}
	}
}

// failManifest fails one operation on the manifest in a flush or a compaction, and opens what is left.
func failManifest(t *testing.T, kind errorfs.OpKind, compacts bool) {
	mem := vfs.NewCrashableMem()
	var failing atomic.Bool
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == kind && strings.Contains(op.Path, "MANIFEST") && failing.Swap(false) {
			return syscall.EIO
		}
		return nil
	}))
	e, err := engine.Open(engine.Options{Dir: "db", FS: fs, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	createTable(t, e)
	flush := func() {
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	if _, err := write("row", setting("q", "a"))(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	change := e.Flush
	if compacts {
		flush()
		change = e.Compact
	}
	failing.Store(true)
	if err := change(t.Context()); err == nil || e.Err() == nil {
		t.Fatalf("the change of the manifest did not fail: %v, %v", err, e.Err())
	}
	time.Sleep(time.Minute) // Pebble tries again
	_ = e.Close()           // reports the failure
	after, err := engine.Open(engine.Options{Dir: "db", FS: mem, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if err := after.Compact(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := readOf(nil, nil)(t.Context(), after); err != nil || got != "row=a" {
		t.Errorf("got %q, %v, want the row", got, err)
	}
}

// If the disk refuses writes, the engine answers them with an error, the process goes on, and later writers do not
// hang.
func TestDiskRefusesWrites(t *testing.T) {
	for _, suffix := range []string{".log", ".sst", "MANIFEST"} {
		for _, noSync := range []bool{false, true} {
			t.Run(fmt.Sprint(suffix, noSync), func(t *testing.T) {
				mem := vfs.NewCrashableMem()
				var failing atomic.Bool
				fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if failing.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, suffix) {
						return errors.New("no more writes")
					}
					return nil
				}))
				e, err := engine.Open(engine.Options{Dir: "db", FS: fs, GCInterval: -1, NoSync: noSync, MemTableBytes: 64 << 10})
				if err != nil {
					t.Fatal(err)
				}
				r := dial(t, e)
				r.create(t)
				apply(t, r, "before", set("f", "q", 1000, "v"))
				failing.Store(true)
				var stored sync.Map
				var wg sync.WaitGroup
				for w := range 4 {
					wg.Go(func() {
						for i := range 200 {
							key := fmt.Sprintf("row%d-%03d", w, i)
							err := r.data.Open(tableID).Apply(r.ctx, key, set("f", "q", 1000, strings.Repeat("x", 2000)))
							if err == nil {
								stored.Store(key, true)
							} else if c := status.Code(err); c != codes.Internal && c != codes.DataLoss {
								t.Errorf("refused write: got %v, want Internal", err)
							}
						}
					})
				}
				wg.Wait()
				if e.Err() == nil && suffix != "MANIFEST" {
					t.Error("Err after failed writes: got nil, want an error")
				}
				r.disconnect(t)
				_ = e.Close() // reports the failure
				if noSync {
					return
				}
				failing.Store(false)
				after := open(t, engine.Options{Dir: "db", FS: mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})})
				left := make(map[string]bool)
				for _, key := range rowKeys(dump(t, after, bigtable.InfiniteRange(""))) {
					left[key] = true
				}
				if !left["before"] {
					t.Error("the row written before the failure is missing")
				}
				stored.Range(func(key, _ any) bool {
					if !left[key.(string)] {
						t.Errorf("row %v was acknowledged and is missing", key)
					}
					return true
				})
			})
		}
	}
}
