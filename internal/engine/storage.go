package engine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine/pebblelog"
	"github.com/tidemark-go/tidemark/internal/private"
)

// markerName is the file that marks a folder as an engine's and holds the version that wrote it. It is created after
// the database. So if the folder has the marker but no database, the database was lost.
const markerName = "TIDEMARK"

// openStorage locks the folder, checks what is in it and opens the database.
func openStorage(o Options, fs vfs.FS, f *fault, w *pressure) (*pebble.DB, *pebble.Lock, error) {
	dir := o.dir()
	if err := fs.MkdirAll(dir, private.FolderMode); err != nil {
		return nil, nil, fmt.Errorf("making the folder: %w", err)
	}
	lock, err := pebble.LockDirectory(dir, fs)
	if err != nil {
		// A failure to open the lock's file is a path error; a lock held by another is not.
		if _, ok := errors.AsType[*os.PathError](err); ok || vfs.IsNoSpaceError(err) {
			return nil, nil, fmt.Errorf("locking the folder: %w", err)
		}
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrLocked, dir, err)
	}
	db, err := openLocked(o, fs, dir, lock, f, w)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return db, lock, nil
}

func openLocked(o Options, fs vfs.FS, dir string, lock *pebble.Lock, f *fault, w *pressure) (db *pebble.DB, err error) {
	version, marked, err := readMarker(fs, dir)
	if err != nil {
		return nil, err
	}
	if version > storageVersion {
		return nil, fmt.Errorf("%w: version %d, this one knows %d", ErrVersion, version, storageVersion)
	}
	if marked {
		if err := removeCheckpoints(fs, dir); err != nil {
			return nil, fmt.Errorf("removing a checkpoint: %w", err)
		}
	}
	desc, err := pebble.Peek(dir, fs)
	if err != nil {
		return nil, fmt.Errorf("looking at %s: %w", dir, err)
	}
	switch {
	case marked && !desc.Exists:
		return nil, fmt.Errorf("%w: the folder %s has its marker but no database", ErrDamaged, dir)
	case !desc.Exists:
		if err := refuseLeftovers(fs, dir); err != nil {
			return nil, err
		}
	case !marked:
		if err := refuseUnmarked(o, fs, dir, lock); err != nil {
			return nil, err
		}
	}
	logs, err := pebblelog.OpenList(fs, dir, desc.ManifestFilename)
	if err != nil {
		return nil, err
	}
	var unclosed []string
	if desc.Exists {
		if unclosed, err = logs.Check(desc.ManifestFilename); err != nil {
			return nil, err
		}
	}
	opening := &openingFS{FS: logs, fault: f, unclosed: unclosed}
	// Pebble panics if it considers an inconsistency its own bug; during opening it is damage.
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, cmp.Or(f.err(), fmt.Errorf("%w: opening %s: %v", ErrDamaged, dir, r))
		}
		if err != nil {
			opening.removeFresh()
		}
	}()
	watched := pebblelog.FS{FS: opening, Failed: f.err, Fail: func(err error) { f.raise(storageError(err)) }}
	db, err = pebble.Open(dir, pebbleOptions(o, checkpointFS{watched, fs, dir}, lock, f, w))
	if err == nil && f.err() == nil {
		if err = claim(db, fs, dir, marked, f); err == nil {
			err = opening.finish()
		}
	} else if err != nil {
		err = openError(err, desc.Exists)
	}
	if err = cmp.Or(f.err(), err); err == nil {
		return db, nil
	}
	if db != nil {
		err = errors.Join(err, db.Close())
	}
	return nil, err
}

// openError classifies why a database did not open. Apart from errors of the system and of Pebble's version, the cause
// is the files' contents: a missing file, or one of a wrong size, is damage as much as a wrong checksum.
func openError(err error, existed bool) error {
	var path *os.PathError
	var errno syscall.Errno
	system := (errors.As(err, &path) || errors.As(err, &errno)) && !errors.Is(err, os.ErrNotExist)
	switch {
	case errors.Is(err, ErrDamaged):
		return err
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case strings.Contains(err.Error(), "format major version"):
		return fmt.Errorf("%w: %w", ErrVersion, err)
	case existed && !system:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fmt.Errorf("opening: %w", err)
}

// openFailure turns an error that is none of Open's other errors into an ErrStorage.
func openFailure(err error) error {
	for _, known := range []error{ErrLocked, ErrDamaged, ErrVersion, ErrForeign, ErrStorage} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrStorage, err)
}

// claim writes the version into a new database, or checks it in an existing one.
func claim(db *pebble.DB, fs vfs.FS, dir string, marked bool, f *fault) error {
	version, found, err := readNumber(db, keyVersion(), 4, "version record")
	switch {
	case err != nil:
		return err
	case version > storageVersion:
		return fmt.Errorf("%w: version %d, this one knows %d", ErrVersion, version, storageVersion)
	case found:
	case marked:
		return fmt.Errorf("%w: the version record is missing", ErrDamaged)
	default:
		if err := refuseForeign(db); err != nil {
			return err
		}
		if err := db.Set(keyVersion(), binary.BigEndian.AppendUint32(nil, storageVersion), pebble.Sync); err != nil {
			return storageError(err)
		}
		// The first log of a database has Pebble's oldest format, whose chunks do not record what was synced.
		if err := db.Flush(); err != nil {
			return storageError(err)
		}
	}
	// openingFS hides failures from Pebble: the record may not be stored. A marker would then turn an unfinished folder
	// into a damaged one.
	if err := f.err(); err != nil || marked {
		return err
	}
	return writeMarker(fs, dir)
}

// refuseUnmarked refuses another program's database before the opening changes it, for example to a newer format. It
// only reads. What it cannot read is left to the opening.
func refuseUnmarked(o Options, fs vfs.FS, dir string, lock *pebble.Lock) (err error) {
	defer func() {
		if recover() != nil || !errors.Is(err, ErrForeign) {
			err = nil
		}
	}()
	db, err := pebble.Open(dir, &pebble.Options{FS: fs, Lock: lock, ReadOnly: true, Logger: pebbleLogger{o.logger(), newFault(false)}})
	if err != nil {
		return err
	}
	defer db.Close()
	if _, found, err := readNumber(db, keyVersion(), 4, "version record"); found || err != nil {
		return err
	}
	return refuseForeign(db)
}

func refuseForeign(db *pebble.DB) error {
	it, err := db.NewIter(nil)
	if err != nil {
		return storageError(err)
	}
	defer it.Close()
	if it.First() {
		return fmt.Errorf("%w: a Pebble database without the engine's version record", ErrForeign)
	}
	if err := it.Error(); err != nil {
		return storageError(err)
	}
	return nil
}

// firstManifest is the first file of a new database. A crash at that moment leaves only this file.
const firstManifest = "MANIFEST-000001"

// refuseLeftovers refuses to create a database over the remains of one that has lost its manifest.
func refuseLeftovers(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("listing the folder: %w", err)
	}
	for _, name := range names {
		manifest := pebblelog.IsManifest(name) && name != firstManifest
		if manifest || pebblelog.IsLog(name) || strings.HasSuffix(name, ".sst") {
			return fmt.Errorf("%w: %s holds %s but no database", ErrDamaged, dir, name)
		}
	}
	return nil
}

func readMarker(fs vfs.FS, dir string) (version int, ok bool, err error) {
	file, err := fs.Open(fs.PathJoin(dir, markerName))
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("reading the folder's marker: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 64))
	if err != nil {
		return 0, false, fmt.Errorf("reading the folder's marker: %w", err)
	}
	name, number, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	version, err = strconv.Atoi(number)
	if name != "tidemark" || err != nil || version < 1 {
		return 0, false, fmt.Errorf("%w: marker reads %q", ErrDamaged, text)
	}
	return version, true, nil
}

func writeMarker(fs vfs.FS, dir string) error {
	if err := pebblelog.Replace(fs, dir, markerName, fmt.Sprintf("tidemark %d\n", storageVersion)); err != nil {
		return fmt.Errorf("writing the folder's marker: %w", err)
	}
	return nil
}

// How often a byte is written again as table files merge. docs/performance.md has the figures.
const (
	// mergeDepth is twice the number of flushed memtables whose files overlap when Pebble merges them into the first
	// level. Each merge writes that level again, so fewer merges write less; each overlapping file costs a read a seek.
	mergeDepth = 8
	// firstLevel is the size at which the first level begins to merge into the next, in memtables. It is close to what
	// one merge brings: mergeDepth/2 memtables, compressed.
	firstLevel = 2
)

func pebbleOptions(o Options, fs vfs.FS, lock *pebble.Lock, f *fault, w *pressure) *pebble.Options {
	log := o.logger()
	opts := &pebble.Options{
		FS:                          fs,
		Lock:                        lock,
		Cleaner:                     cleaner{},
		FormatMajorVersion:          pebble.FormatNewest,                         // checks the middle of the log
		CacheSize:                   o.cacheBytes() + 2*int64(o.memTableBytes()), // Pebble takes memtables out of it
		MemTableSize:                o.memTableBytes(),
		MemTableStopWritesThreshold: pebbleNoLimit,
		L0CompactionThreshold:       mergeDepth,
		L0StopWritesThreshold:       pebbleNoLimit,
		LBaseMaxBytes:               firstLevel * int64(o.memTableBytes()),
		FlushDelayDeleteRange:       10 * time.Second, // drops a dropped table's files without further writes
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      pebbleLogger{log: log, fault: f},
		EventListener: &pebble.EventListener{
			WALCreated: func(pebble.WALCreateInfo) { w.changed.Store(true) },
			FlushEnd:   func(pebble.FlushInfo) { signal(w.flushed) },
			BackgroundError: func(err error) {
				log.Error("storage background error", "error", err)
				f.raise(storageError(err))
			},
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				log.Error("storage damage", "path", info.Path, "error", info.Details)
				f.raise(fmt.Errorf("%w: %s: %w", ErrDamaged, info.Path, info.Details))
			},
		},
	}
	opts.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	return opts
}

// pebbleLogger passes Pebble's messages on. Pebble expects Fatalf to end the process; a library must not do that. So
// the engine records the failure, and every caller checks it before it responds.
type pebbleLogger struct {
	log   *slog.Logger
	fault *fault
}

func (l pebbleLogger) Infof(format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Error(fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.log.Error(fmt.Sprintf(format, args...))
	var cause error
	for _, a := range args {
		if err, ok := a.(error); ok {
			cause = err
		}
	}
	if cause != nil {
		l.fault.raise(storageError(cause))
		return
	}
	// This is not a failed operation but an impossible state: the contents of memory are wrong.
	l.fault.raise(fmt.Errorf("%w: %s", ErrStorage, fmt.Sprintf(format, args...)))
	l.fault.broken.Store(true)
}
