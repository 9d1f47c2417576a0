package pebblelog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logListName is the file that names the write-ahead logs of a folder. Pebble does not record which logs there are:
// without this file, nobody would notice that a log and its writes are lost.
//
// A log is added to the list after its file is durable, and taken off before the file is removed. So every log on the
// list must exist, whenever a crash comes. The file is one line of words and their checksum, and is replaced as a
// whole.
//
// The list also names the newest manifests, each with its length on disk at that time. The writes of a removed log are
// in table files that only the manifest knows: a manifest that got shorter has lost them.
const logListName = "LOGS"

// List is the file system of a folder, and maintains the list of its logs. It also makes a manifest durable before
// Pebble creates the pointer to it. Pebble alone makes both durable with one sync of the folder, and a crash during
// that sync may keep only the pointer.
type List struct {
	vfs.FS
	dir string

	mu        sync.Mutex
	names     []string // sorted
	manifests []*manifestFile
}

// maxManifests is the number of manifests on the list: the current one, and the one that Pebble is about to use.
const maxManifests = 2

// manifestFile is a manifest that counts its synced bytes.
type manifestFile struct {
	vfs.File
	name    string
	written int64
	durable atomic.Int64
}

func (f *manifestFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

// Sync adds to durable what was written before Sync began: writes and syncs of a manifest never overlap.
func (f *manifestFile) Sync() error {
	err := f.File.Sync()
	if err == nil {
		f.durable.Store(f.written)
	}
	return err
}

func (f *manifestFile) word() string { return f.name + "=" + strconv.FormatInt(f.durable.Load(), 10) }

func parseManifest(word string) (*manifestFile, bool) {
	name, digits, ok := strings.Cut(word, "=")
	size, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || !IsManifest(name) {
		return nil, false
	}
	f := &manifestFile{name: name}
	f.durable.Store(size)
	return f, true
}

// OpenList reads the list. It checks that all listed logs exist, and that the current manifest is not shorter than
// listed. A folder without a list file has an empty list.
func OpenList(fs vfs.FS, dir, manifest string) (*List, error) {
	l := &List{FS: fs, dir: dir}
	file, err := fs.Open(fs.PathJoin(dir, logListName))
	if errors.Is(err, os.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of logs: %w", err)
	}
	text, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read the list of logs: %w", err)
	}
	words := strings.Fields(string(text))
	if len(words) == 0 || string(text) != logListText(words[:len(words)-1]) {
		return nil, fmt.Errorf("%w: %s holds %.100q", ErrDamaged, logListName, text)
	}
	for _, name := range words[:len(words)-1] {
		if f, ok := parseManifest(name); ok {
			if f.name != fs.PathBase(manifest) {
				continue // not in use yet, or replaced
			}
			info, err := fs.Stat(manifest)
			if errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("%w: %s is missing", ErrDamaged, f.name)
			}
			if err != nil {
				return nil, fmt.Errorf("stat the manifest: %w", err)
			}
			if info.Size() < f.durable.Load() {
				return nil, fmt.Errorf("%w: %s has %d bytes, want at least %d", ErrDamaged, f.name, info.Size(), f.durable.Load())
			}
			l.manifests = append(l.manifests, f)
			continue
		}
		l.names = append(l.names, name)
		if _, err := fs.Stat(fs.PathJoin(dir, name)); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: the log %s is missing", ErrDamaged, name)
		} else if err != nil {
			return nil, fmt.Errorf("stat a log: %w", err)
		}
	}
	return l, nil
}

// durable returns how many bytes of a manifest were synced when the list was written.
func (l *List) durable(manifest string) int64 {
	for _, f := range l.manifests {
		if f.name == manifest {
			return f.durable.Load()
		}
	}
	return 0
}

// logListText returns the contents of the list file.
func logListText(words []string) string {
	joined := strings.Join(words, " ")
	return strings.TrimSpace(fmt.Sprintf("%s %08x", joined, crc32.ChecksumIEEE([]byte(joined)))) + "\n"
}

// IsManifest reports whether a file is a manifest, by its name.
func IsManifest(name string) bool { return strings.HasPrefix(name, "MANIFEST-") }

// Create creates a file, and adds it to the list if it is a log.
func (l *List) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := l.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	switch base := l.PathBase(name); {
	case IsLog(base):
		err = l.change(func(names []string) []string { return append(names, base) })
	case IsManifest(base):
		if err = SyncFolder(l.FS, l.dir); err == nil {
			file = l.follow(file, base)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// follow adds a new manifest to the list. The next change writes it.
func (l *List) follow(file vfs.File, name string) vfs.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &manifestFile{File: file, name: name}
	l.manifests = append(l.manifests, f)
	l.manifests = slices.Clone(l.manifests[max(0, len(l.manifests)-maxManifests):])
	return f
}

// Remove removes a file. If the file is a log, Remove takes it off the list first.
func (l *List) Remove(name string) error {
	if IsLog(name) {
		base := l.PathBase(name)
		err := l.change(func(names []string) []string {
			return slices.DeleteFunc(names, func(n string) bool { return n == base })
		})
		if err != nil {
			return err
		}
	}
	return l.FS.Remove(name)
}

// Unwrap returns the wrapped file system to Pebble.
func (l *List) Unwrap() vfs.FS { return l.FS }

// change replaces the list. It syncs the folder first, so that a crash cannot undo what is on the list.
func (l *List) change(edit func([]string) []string) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the list of logs: %w", err)
		}
	}()
	if err := SyncFolder(l.FS, l.dir); err != nil {
		return err
	}
	next := slices.Compact(slices.Sorted(slices.Values(edit(slices.Clone(l.names)))))
	words := slices.Clone(next)
	for _, f := range l.manifests {
		words = append(words, f.word())
	}
	if err := Replace(l.FS, l.dir, logListName, logListText(words)); err != nil {
		return err
	}
	l.names = next
	return nil
}

// Replace writes a file of a folder durably. A crash leaves the old contents or the new ones.
func Replace(fs vfs.FS, dir, name, text string) error {
	path := fs.PathJoin(dir, name)
	file, err := fs.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := fs.Rename(path+".new", path); err != nil {
		return err
	}
	return SyncFolder(fs, dir)
}

// SyncFolder makes the file names of a folder durable, not the files' contents.
func SyncFolder(fs vfs.FS, dir string) error {
	folder, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
