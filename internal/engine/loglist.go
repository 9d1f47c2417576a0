package engine

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

// logListName is the file that names the write-ahead logs of a folder. Pebble does not keep count of them: without this
// file, one that is lost would take its writes along unnoticed.
//
// A log is listed after it is durably there, and struck off before it is removed. So what is listed must be there, at
// whatever moment a crash comes. The file is one line, words and a checksum of them, and is replaced as a whole.
//
// Beside the logs it names the newest manifests, each with the length that was on disk by then. What was in a log that has
// been removed is in table files, and of them the manifest alone knows: one that is shorter has lost them.
const logListName = "LOGS"

// logList is the file system of a folder that keeps the list of its logs. It also makes a manifest durable before Pebble
// points to it: Pebble leaves both to one sync of the folder, and a crash in between may keep the pointer alone.
type logList struct {
	vfs.FS
	dir string

	mu        sync.Mutex
	names     []string // sorted
	manifests []*manifestFile
}

// keptManifests is how many are on the list: the one in use, and the one that Pebble is about to use.
const keptManifests = 2

// manifestFile is a manifest, which counts how much of it is on disk.
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

// Sync counts what was written before it began: writes and syncs of a manifest take turns.
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
	if !ok || err != nil || !isManifest(name) {
		return nil, false
	}
	f := &manifestFile{name: name}
	f.durable.Store(size)
	return f, true
}

// openLogList reads the list and checks that the logs on it are there, and the manifest in use as long as it was. A folder
// without a list has no logs on it.
func openLogList(fs vfs.FS, dir, manifest string) (*logList, error) {
	l := &logList{FS: fs, dir: dir}
	file, err := fs.Open(fs.PathJoin(dir, logListName))
	if errors.Is(err, os.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of logs: %w", err)
	}
	text, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("reading the list of logs: %w", err)
	}
	words := strings.Fields(string(text))
	if len(words) == 0 || string(text) != logListText(words[:len(words)-1]) {
		return nil, fmt.Errorf("%w: %s reads %.100q", ErrDamaged, logListName, text)
	}
	for _, name := range words[:len(words)-1] {
		if f, ok := parseManifest(name); ok {
			if f.name != fs.PathBase(manifest) {
				continue // not in use yet, or no more
			}
			info, err := fs.Stat(manifest)
			if errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("%w: %s is missing", ErrDamaged, f.name)
			}
			if err != nil {
				return nil, fmt.Errorf("looking at the manifest: %w", err)
			}
			if info.Size() < f.durable.Load() {
				return nil, fmt.Errorf("%w: %s has %d bytes, and had %d", ErrDamaged, f.name, info.Size(), f.durable.Load())
			}
			l.manifests = append(l.manifests, f)
			continue
		}
		l.names = append(l.names, name)
		if _, err := fs.Stat(fs.PathJoin(dir, name)); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: the log %s is missing", ErrDamaged, name)
		} else if err != nil {
			return nil, fmt.Errorf("looking at a log: %w", err)
		}
	}
	return l, nil
}

// durable is how much of a manifest was on disk when the list was written, in bytes.
func (l *logList) durable(manifest string) int64 {
	for _, f := range l.manifests {
		if f.name == manifest {
			return f.durable.Load()
		}
	}
	return 0
}

// logListText is what the file holds.
func logListText(words []string) string {
	joined := strings.Join(words, " ")
	return strings.TrimSpace(fmt.Sprintf("%s %08x", joined, crc32.ChecksumIEEE([]byte(joined)))) + "\n"
}

func isManifest(name string) bool { return strings.HasPrefix(name, "MANIFEST-") }

// Create makes a file, and lists it if it is a log.
func (l *logList) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := l.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	switch base := l.PathBase(name); {
	case isLog(base):
		err = l.change(func(names []string) []string { return append(names, base) })
	case isManifest(base):
		if err = syncFolder(l.FS, l.dir); err == nil {
			file = l.follow(file, base)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// follow puts a new manifest on the list, from the next change of it on.
func (l *logList) follow(file vfs.File, name string) vfs.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &manifestFile{File: file, name: name}
	l.manifests = append(l.manifests, f)
	l.manifests = slices.Clone(l.manifests[max(0, len(l.manifests)-keptManifests):])
	return f
}

// Remove removes a file, and strikes it off first if it is a log.
func (l *logList) Remove(name string) error {
	if isLog(name) {
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

// Unwrap lets Pebble find the file system below.
func (l *logList) Unwrap() vfs.FS { return l.FS }

// change replaces the list. The folder is synced before, so that nothing is listed that a crash undoes.
func (l *logList) change(edit func([]string) []string) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing the list of logs: %w", err)
		}
	}()
	if err := syncFolder(l.FS, l.dir); err != nil {
		return err
	}
	next := slices.Compact(slices.Sorted(slices.Values(edit(slices.Clone(l.names)))))
	words := slices.Clone(next)
	for _, f := range l.manifests {
		words = append(words, f.word())
	}
	path := l.PathJoin(l.dir, logListName)
	file, err := l.FS.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, logListText(words))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := l.Rename(path+".new", path); err != nil {
		return err
	}
	l.names = next
	return syncFolder(l.FS, l.dir)
}
