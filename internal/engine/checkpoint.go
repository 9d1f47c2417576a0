package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A checkpoint is in a folder of the engine's folder, so on its file system, which hard links need.
const (
	checkpointPrefix = "tidemark-checkpoint-" // programs keep folders named checkpoint-1 of their own
	checkpointTries  = 1000
)

var errInMemory = errors.New("engine: a store in memory has no files")

// Checkpoint returns a new folder with the store's files, as of one moment during the call. Each acknowledged write is
// in it. Table files are hard links, so they take neither time nor space, until the store no longer needs its own. The
// caller only reads them, and calls release, which removes the folder. Open removes it, too.
//
// Writes and reads go on meanwhile, but Close waits.
func (e *Engine) Checkpoint(ctx context.Context) (dir string, release func() error, err error) {
	if e.memory {
		return "", nil, errInMemory
	}
	if err := e.enter(ctx); err != nil {
		return "", nil, err
	}
	defer e.leave()
	if err := e.flush(ctx); err != nil { // a log is copied, a table file is linked
		return "", nil, err
	}
	e.checkpoints.Lock()
	defer e.checkpoints.Unlock()
	dir, err = e.freeCheckpoint()
	if err != nil {
		return "", nil, err
	}
	release = func() error { return e.fs.RemoveAll(dir) }
	err = e.guard(func() error { return e.db.Checkpoint(dir, pebble.WithFlushedWAL()) })
	if err == nil {
		err = e.fault.err()
	}
	if err == nil {
		err = writeMarker(e.fs, dir)
	}
	if err != nil {
		return "", nil, errors.Join(storageError(err), release())
	}
	return dir, release, nil
}

// freeCheckpoint returns a name that is not in use.
func (e *Engine) freeCheckpoint() (string, error) {
	for i := range checkpointTries {
		dir := e.fs.PathJoin(e.dir, checkpointPrefix+strconv.Itoa(i))
		if _, err := e.fs.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return dir, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", errors.New("engine: too many copies of the folder are being made")
}

// removeCheckpoints removes what a process left that ended while it copied a checkpoint.
func removeCheckpoints(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, checkpointPrefix) {
			if err := fs.RemoveAll(fs.PathJoin(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkpointFS is the file system as Pebble sees it. Below it, FS watches the files that the engine cannot do without;
// a failure there ends writing. In a checkpoint it is an error of the checkpoint alone.
type checkpointFS struct {
	vfs.FS
	plain vfs.FS
	dir   string
}

// of returns the file system of a name.
func (fs checkpointFS) of(name string) vfs.FS {
	rel, err := filepath.Rel(fs.dir, name)
	if inDir := err == nil && filepath.IsLocal(rel); !inDir || strings.HasPrefix(rel, checkpointPrefix) {
		return fs.plain
	}
	return fs.FS
}

// Create makes a file.
func (fs checkpointFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.of(name).Create(name, category)
}

// Link gives a file a second name.
func (fs checkpointFS) Link(from, to string) error { return fs.of(to).Link(from, to) }

// OpenDir opens a folder.
func (fs checkpointFS) OpenDir(name string) (vfs.File, error) { return fs.of(name).OpenDir(name) }

// Remove removes a file.
func (fs checkpointFS) Remove(name string) error { return fs.of(name).Remove(name) }

// RemoveAll removes a folder.
func (fs checkpointFS) RemoveAll(name string) error { return fs.of(name).RemoveAll(name) }

// Rename renames a file.
func (fs checkpointFS) Rename(from, to string) error { return fs.of(to).Rename(from, to) }

// MkdirAll makes a folder.
func (fs checkpointFS) MkdirAll(name string, mode os.FileMode) error {
	return fs.of(name).MkdirAll(name, mode)
}

// Unwrap lets Pebble find the file system below.
func (fs checkpointFS) Unwrap() vfs.FS { return fs.FS }
