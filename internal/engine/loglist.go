package engine

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logListName is the file that names the write-ahead logs of a folder. Pebble does not keep count of them: without this
// file, one that is lost would take its writes along unnoticed.
//
// A log is listed after it is durably there, and struck off before it is removed. So what is listed must be there, at
// whatever moment a crash comes. The file is one line, the names and a checksum of them, and is replaced as a whole.
const logListName = "LOGS"

// logList is the file system of a folder that keeps the list of its logs. It also makes a manifest durable before Pebble
// points to it: Pebble leaves both to one sync of the folder, and a crash in between may keep the pointer alone.
type logList struct {
	vfs.FS
	dir string

	mu    sync.Mutex
	names []string // sorted
}

// openLogList reads the list and checks that the logs on it are there. A folder without a list has no logs on it.
func openLogList(fs vfs.FS, dir string) (*logList, error) {
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
	l.names = words[:len(words)-1]
	for _, name := range l.names {
		if _, err := fs.Stat(fs.PathJoin(dir, name)); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: the log %s is missing", ErrDamaged, name)
		} else if err != nil {
			return nil, fmt.Errorf("looking at a log: %w", err)
		}
	}
	return l, nil
}

// logListText is what the file holds.
func logListText(names []string) string {
	joined := strings.Join(names, " ")
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
		err = syncFolder(l.FS, l.dir)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
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
	path := l.PathJoin(l.dir, logListName)
	file, err := l.FS.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, logListText(next))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := l.Rename(path+".new", path); err != nil {
		return err
	}
	l.names = next
	return syncFolder(l.FS, l.dir)
}
