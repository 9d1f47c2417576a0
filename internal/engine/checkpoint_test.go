package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// noCheckpoints is a file system on which no file can be made in a checkpoint, once it is set.
type noCheckpoints struct {
	vfs.FS
	set atomic.Bool
}

func (fs *noCheckpoints) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if fs.set.Load() && strings.Contains(name, checkpointPrefix) && strings.HasSuffix(name, ".log") {
		return nil, syscall.ENOSPC
	}
	return fs.FS.Create(name, category)
}

// TestCheckpointFailsAlone: a checkpoint that finds no space leaves nothing behind, and writing goes on.
func TestCheckpointFailsAlone(t *testing.T) {
	fs := &noCheckpoints{FS: privateFS{vfs.Default}}
	e, err := Open(Options{Dir: t.TempDir(), FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	fs.set.Store(true)
	if dir, _, err := e.Checkpoint(t.Context()); !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, ErrStorage) {
		t.Errorf("a checkpoint without space: %q, %v", dir, err)
	}
	if left, _ := filepath.Glob(filepath.Join(e.dir, checkpointPrefix+"*")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	if err := e.Err(); err != nil {
		t.Errorf("the engine has failed: %v", err)
	}
	fs.set.Store(false)
	dir, release, err := e.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := e.Checkpoint(t.Context()) // never released
	if err != nil || other == dir {
		t.Errorf("a second checkpoint is %q, %v; the first one is %q", other, err, dir)
	}
	c, err := Open(Options{Dir: dir, GCInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), release(), e.Close()); err != nil {
		t.Error(err)
	}
	again, err := Open(Options{Dir: e.dir, FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening the folder keeps %s: %v", other, err)
	}
}

// TestOpenKeepsOtherFolders: a folder may hold folders of other programs, also if their names are like a checkpoint's.
func TestOpenKeepsOtherFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	others := []string{filepath.Join(dir, "checkpoint-0"), filepath.Join(dir, "checkpoint-500"), filepath.Join(dir, "data")}
	for _, other := range others {
		if err := os.MkdirAll(other, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, when := range []string{"first", "second"} {
		e, err := Open(Options{Dir: dir, GCInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		for _, other := range others {
			if _, err := os.Stat(other); err != nil {
				t.Errorf("after the %s opening: %v", when, err)
			}
		}
	}
}
