// Package private protects folders on disk from other users of the machine.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// The modes of a folder and its files: full access for the owner, none for anybody else.
const (
	FolderMode fs.FileMode = 0o700
	FileMode   fs.FileMode = 0o600
)

const (
	others       = 0o077 // the permissions of group and others
	othersWrite  = 0o022
	allowedModes = "a folder that only its owner can write, such as one with mode 0700"
)

// Folder creates dir, and its missing parents, with mode 0700. If the folder exists, Folder removes the permissions of
// group and others from it and from all that is in it, but does not descend into subfolders.
//
// It refuses:
//
//   - a folder that others can write, unless it is empty and without the sticky bit: somebody else may have put its
//     contents there. An empty one is made private, so that `mkdir` under a umask of 002 works;
//   - a folder that is a symbolic link, and one that contains a link. Parents of dir may be links: their owners decide
//     where dir is.
//
// It does not check the owner of the folder, nor the permissions of parents: a user who can rename a parent can replace
// the folder. On Windows it only checks for links, because modes there do not hold the permissions of files.
//
// Call it before anything in the folder is opened. An error is a *fs.PathError, and contains the mode.
func Folder(dir string) error {
	dir = filepath.Clean(dir) // with a trailing slash, the system would follow a link
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFolder(dir); err != nil {
			return err
		}
		info, err = os.Lstat(dir)
	}
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return refuse(dir, "is a symbolic link; give the folder that it points to")
	case !info.IsDir():
		return refuse(dir, "is not a folder")
	}
	if err := holdsNoLink(dir); err != nil {
		return err
	}
	if err := tightenFolder(dir, info); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if writable(info) && len(entries) > 0 {
		return refuseMode(dir, info) // another process created it first
	}
	for _, entry := range entries {
		if err := tighten(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // A removed file was another program's, whose lock the caller is about to meet.
		}
	}
	return nil
}

// holdsNoLink refuses a folder that contains a link, before anything in it is changed.
func holdsNoLink(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			return refuseLink(filepath.Join(dir, entry.Name()))
		}
	}
	return nil
}

func refuseLink(name string) error {
	return refuse(name, "is a symbolic link; allowed are files and folders")
}

// makeFolder creates a folder and its missing parents, and makes their names durable.
func makeFolder(dir string) error {
	parents := changedBy(dir)
	if err := os.MkdirAll(dir, FolderMode); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := SyncFolder(parent); err != nil {
			return err
		}
	}
	return nil
}

// changedBy returns the folders that get a new entry when dir and its missing parents are created, the innermost first.
func changedBy(dir string) (parents []string) {
	for {
		parent := filepath.Dir(dir)
		parents = append(parents, parent)
		if _, err := os.Lstat(parent); parent == dir || !errors.Is(err, fs.ErrNotExist) {
			return parents
		}
		dir = parent
	}
}

// SyncFolder makes the names in a folder durable, not the files' contents. Windows cannot do that.
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// writable reports whether others can write a folder.
func writable(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&othersWrite != 0
}

// tightenFolder removes the permissions of others from a folder, unless they can write it and it is not empty.
func tightenFolder(dir string, info fs.FileInfo) error {
	if writable(info) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		if len(entries) > 0 || info.Mode()&fs.ModeSticky != 0 {
			return refuseMode(dir, info)
		}
	}
	if err := chmod(dir, info); err != nil {
		return err
	}
	now, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if writable(now) { // the file system stores no modes
		return refuseMode(dir, now)
	}
	return nil
}

// tighten removes the permissions of others from a file in a folder.
func tighten(name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return refuseLink(name)
	}
	return chmod(name, info)
}

func chmod(name string, info fs.FileInfo) error {
	if runtime.GOOS == "windows" || info.Mode().Perm()&others == 0 {
		return nil
	}
	return os.Chmod(name, info.Mode()&^others)
}

func refuse(name, why string) error {
	return &fs.PathError{Op: "open", Path: name, Err: errors.New(why)}
}

func refuseMode(dir string, info fs.FileInfo) error {
	return refuse(dir, fmt.Sprintf("has mode %#o, which lets others write it; allowed is %s", unixMode(info.Mode()), allowedModes))
}

// unixMode returns a mode in the form of chmod.
func unixMode(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	if m&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}
