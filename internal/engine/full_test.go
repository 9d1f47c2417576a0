package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"cloud.google.com/go/bigtable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// refusing is a file system that fails operations with errno: those that refuses selects, after the first `after` of
// them; with once, only the next one.
type refusing struct {
	errno   syscall.Errno
	refuses func(op errorfs.Op) bool
	after   int64
	once    bool
	count   atomic.Int64
	lifted  atomic.Bool
}

func (r *refusing) wrap(fs vfs.FS) vfs.FS { return errorfs.Wrap(fs, errorfs.InjectorFunc(r.inject)) }

func (r *refusing) inject(op errorfs.Op) error {
	if !r.refuses(op) || r.lifted.Load() {
		return nil
	}
	if n := r.count.Add(1); n <= r.after || r.once && n > r.after+1 {
		return nil
	}
	return &fs.PathError{Op: fmt.Sprint(op.Kind), Path: op.Path, Err: r.errno}
}

// onWrites selects the operations that a full or read-only disk refuses.
func onWrites(op errorfs.Op) bool {
	return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpLock && op.Kind != errorfs.OpRemove && op.Kind != errorfs.OpFileClose
}

// onFiles selects the operations that fail when a process has too many open files.
func onFiles(op errorfs.Op) bool {
	return op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpOpen || op.Kind == errorfs.OpOpenDir
}

// unflushed returns a folder "db" as a killed process leaves it: all rows are in logs.
func unflushed(t *testing.T, rows int) *vfs.MemFS {
	t.Helper()
	mem := vfs.NewCrashableMem()
	r := open(t, engine.Options{Dir: "db", FS: mem, GCInterval: -1})
	r.create(t)
	for i := range rows {
		apply(t, r, fmt.Sprintf("row%05d", i), set("f", "q", 1000, noise(i)))
	}
	return mem.CrashClone(vfs.CrashCloneCfg{})
}

func memSize(t *testing.T, fs vfs.FS) (total int64) {
	t.Helper()
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if info, err := fs.Stat("db/" + name); err == nil {
			total += info.Size()
		}
	}
	return total
}

// Whichever operation of Open the disk starts to refuse, Open returns the reason and does not fill the disk, and a
// later Open finds all rows. Pebble alone would retry forever.
func TestOpenOnARefusingDisk(t *testing.T) {
	testkit.Plain(t)
	const rows = 200
	source := unflushed(t, rows)
	for name, kind := range map[string]struct {
		errno   syscall.Errno
		refuses func(errorfs.Op) bool
	}{
		"full":       {syscall.ENOSPC, onWrites},
		"quota":      {syscall.EDQUOT, onWrites},
		"read only":  {syscall.EROFS, onWrites},
		"many files": {syscall.EMFILE, onFiles},
	} {
		t.Run(name, func(t *testing.T) {
			refused := 0
			for after := int64(0); ; after++ {
				if name != "full" && name != "many files" {
					after += 4
				}
				mem := source.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
				before := memSize(t, mem)
				disk := &refusing{errno: kind.errno, refuses: kind.refuses, after: after}
				e, err := engine.Open(engine.Options{Dir: "db", FS: disk.wrap(unlocked{mem}), GCInterval: -1})
				disk.lifted.Store(true)
				switch {
				case err == nil:
					_ = e.Close() // may report a failure in the background
				case !errors.Is(err, engine.ErrStorage) || !errors.Is(err, kind.errno) || errors.Is(err, engine.ErrDamaged):
					t.Errorf("operation %d refused: got %v, want ErrStorage and %v", after, err, kind.errno)
				default:
					refused++
					// A finished flush stays in the folder, perhaps next to the logs that it replaces.
					if size := memSize(t, mem); size > 2*before+10_000 {
						t.Errorf("operation %d refused: the folder grew from %d to %d bytes, want at most about twice", after, before, size)
					}
				}
				again, err := engine.Open(engine.Options{Dir: "db", FS: unlocked{mem}, GCInterval: -1})
				if err != nil {
					t.Fatalf("operation %d refused: the folder does not open later: %v", after, err)
				}
				r := dial(t, again)
				if got := len(dump(t, r, bigtable.InfiniteRange(""))); got != rows {
					t.Errorf("operation %d refused: got %d rows later, want %d", after, got, rows)
				}
				r.disconnect(t)
				if err := again.Close(); err != nil {
					t.Error(err)
				}
				if disk.count.Load() <= after || t.Failed() {
					break // the last operations came after Open returned
				}
			}
			t.Logf("%d openings were refused", refused)
			if refused < 5 {
				t.Errorf("got %d refused openings, want at least 5", refused)
			}
		})
	}
}

// If one operation fails while Open creates a store, a later Open creates it. The operations that follow must not make
// the folder look like a store that was complete.
func TestCreationThatFailsOnce(t *testing.T) {
	refused := 0
	for after := int64(0); ; after++ {
		mem := vfs.NewCrashableMem()
		disk := &refusing{errno: syscall.EIO, refuses: onWrites, after: after, once: true}
		e, err := engine.Open(engine.Options{Dir: "db", FS: disk.wrap(unlocked{mem}), GCInterval: -1})
		count := disk.count.Load()
		if err == nil {
			_ = e.Close() // may report a failure in the background
		} else {
			refused++
		}
		for _, lost := range []bool{true, false} {
			left := mem
			if lost {
				left = mem.CrashClone(vfs.CrashCloneCfg{})
			}
			again, err := engine.Open(engine.Options{Dir: "db", FS: unlocked{left}, GCInterval: -1})
			if err != nil {
				t.Errorf("operation %d failed; without power then %v: the folder does not open later: %v", after, lost, err)
				continue
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		}
		if count <= after {
			break
		}
	}
	if refused < 5 {
		t.Errorf("got %d failed creations, want at least 5", refused)
	}
}

// If the disk is full when an engine closes, Close returns although its flush fails. Pebble alone would retry forever.
func TestCloseOnAFullDisk(t *testing.T) {
	for _, part := range []string{"", ".sst", "MANIFEST", ".log", "LOGS"} {
		mem := vfs.NewCrashableMem()
		disk := &refusing{errno: syscall.ENOSPC, refuses: func(op errorfs.Op) bool { return onWrites(op) && strings.Contains(op.Path, part) }}
		disk.lifted.Store(true)
		e, err := engine.Open(engine.Options{Dir: "db", FS: disk.wrap(unlocked{mem}), GCInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		r := dial(t, e)
		r.create(t)
		fillRows(t, r, 100)
		disk.lifted.Store(false)
		r.disconnect(t)
		_ = e.Close() // reports the failure
		r = open(t, engine.Options{Dir: "db", FS: unlocked{mem}})
		if got := len(dump(t, r, bigtable.InfiniteRange(""))); got != 100 {
			t.Errorf("writes to %q refused during Close: got %d rows, want 100", part, got)
		}
	}
}
