package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/diskerr"
	"github.com/tidemark-go/tidemark/internal/private"
)

// step is called before each change of the disk. Tests end the process there.
var step = func() {}

const (
	lockName = "LOCK"     // the engine's lock of a folder has the same name
	partial  = ".partial" // added to the name of a folder that is not complete
)

// fill makes a new folder, whose contents f writes. The folder has another name until it is complete and on disk: a
// crash leaves either none or all of it. The next fill of the same folder removes the remains.
func fill(dir string, f func(temp string) error) (err error) {
	dir = filepath.Clean(dir)
	if err := refuseExisting(dir); err != nil {
		return err
	}
	temp := dir + partial
	step()
	if err := private.Folder(temp); err != nil {
		return err
	}
	unlock, err := lockFolder(temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := empty(temp); err != nil {
		return err
	}
	if err = f(temp); err == nil {
		err = syncFolders(temp)
	}
	if err == nil {
		err = refuseExisting(dir)
	}
	if runtime.GOOS == "windows" { // it renames no folder with an open file
		err = errors.Join(err, unlock())
	}
	if err == nil {
		step()
		err = os.Rename(temp, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	step()
	return private.SyncFolder(filepath.Dir(dir))
}

func refuseExisting(dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return &fs.PathError{Op: "create", Path: dir, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lockFolder locks a folder, until unlock or the end of the process. unlock may be called twice.
func lockFolder(dir string) (unlock func() error, err error) {
	step()
	lock, err := vfs.Default.Lock(filepath.Join(dir, lockName))
	if err != nil {
		if _, ok := errors.AsType[*os.PathError](err); ok {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %s: %w", diskerr.ErrLocked, dir, err)
	}
	if err := os.Chmod(filepath.Join(dir, lockName), private.FileMode); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return sync.OnceValue(lock.Close), nil
}

// empty removes everything in a folder except its lock.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != lockName {
			step()
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// folderOf makes the folder of a file.
func folderOf(name string) error {
	step()
	return os.MkdirAll(filepath.Dir(name), private.FolderMode)
}

// link gives a file a second name. It fails if the file system cannot do that.
func link(from, to string) error {
	if err := folderOf(to); err != nil {
		return err
	}
	step()
	return os.Link(from, to)
}

// linkOrCopy gives a file a second name, or copies it if the file system cannot do that. It returns its size and sum.
func linkOrCopy(ctx context.Context, from, to string) (File, error) {
	if link(from, to) != nil {
		return copyFile(ctx, from, to)
	}
	return sumFile(ctx, from)
}

// copyFile copies a file durably, and returns its size and sum.
func copyFile(ctx context.Context, from, to string) (f File, err error) {
	src, err := os.Open(from)
	if err != nil {
		return f, err
	}
	defer src.Close()
	return writeFile(to, reader{ctx, src})
}

// reader is read until its context ends.
type reader struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	if err := ctxerr.Of(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// writeFile makes a durable file, and returns its size and sum.
func writeFile(to string, src io.Reader) (f File, err error) {
	if err := folderOf(to); err != nil {
		return f, err
	}
	step()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private.FileMode)
	if err != nil {
		return f, err
	}
	hash := sha256.New()
	step()
	f.Bytes, err = io.Copy(io.MultiWriter(dst, hash), src)
	step()
	err = errors.Join(err, dst.Sync(), dst.Close())
	f.Sum = hex.EncodeToString(hash.Sum(nil))
	return f, err
}

// sumFile reads a file, and returns its size and sum.
func sumFile(ctx context.Context, name string) (f File, err error) {
	src, err := os.Open(name)
	if err != nil {
		return f, err
	}
	defer src.Close()
	hash := sha256.New()
	f.Bytes, err = io.Copy(hash, reader{ctx, src})
	f.Sum = hex.EncodeToString(hash.Sum(nil))
	return f, err
}

// expect returns an error if a file is not the one that the manifest lists.
func (f File) expect(got File, err error) error {
	if err != nil {
		return err
	}
	if got.Bytes != f.Bytes || got.Sum != f.Sum {
		return damaged("%s has %d bytes with the SHA-256 %.16s, want %d with %.16s", f.Name, got.Bytes, got.Sum, f.Bytes, f.Sum)
	}
	return nil
}

// syncFolders makes the names in a folder and its subfolders durable.
func syncFolders(dir string) error {
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		step()
		return private.SyncFolder(name)
	})
}
