package engine

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configures an engine. The zero value is an engine that syncs each write, kept in memory.
type Options struct {
	// Dir is the folder that holds the data; it is made if it does not exist. It and its files are for their owner alone, as
	// private.Folder makes and refuses them. Empty means in memory: everything is gone after Close.
	Dir string
	// FS is the file system that holds Dir; of another one than the system's, nobody looks at modes. Nil means the operating system's, or a fresh one in memory where Dir is
	// empty. Tests hand in one to reopen it or to break it.
	FS vfs.FS
	// NoSync answers writes before they are on disk; they get there about half a second later at most, and with Close. A
	// crash of the machine loses those of that time, one of the process the last few; never half a row. Changes of tables
	// are synced all the same.
	NoSync bool
	// Clock gives server timestamps and the age of cells. Nil means time.Now.
	Clock func() time.Time
	// Steady tells how much time has passed, by a clock that nobody sets: while Clock is ahead of it nothing is collected. Nil
	// means the process's monotonic clock, and that the folder remembers the time. Tests that move Clock move it too.
	Steady func() time.Duration
	// GCInterval is the time between two passes that remove what the families' rules no longer keep; the first begins
	// after 5 seconds at most. A pass works for about a twentieth of the time that it takes, and rests for the others, so
	// that of a large store takes hours. 0 means one minute, negative means never (RunGC still works).
	GCInterval time.Duration
	// CacheBytes is the memory for blocks read from disk. 0 means 64 MiB.
	CacheBytes int64
	// MemTableBytes is the memory for writes that are in the log but not in a table file yet; one is in use, and up to
	// five under heavy writing. 0 means 16 MiB on disk and 4 MiB in memory.
	MemTableBytes uint64
	// Logger receives what the storage has to say. Nil means nothing is logged.
	Logger *slog.Logger
}

const (
	defaultGCInterval       = time.Minute
	defaultCacheBytes       = 64 << 20
	defaultDiskMemTable     = 16 << 20
	defaultInMemoryMemTable = 4 << 20
)

func (o Options) inMemory() bool { return o.Dir == "" }

func (o Options) fs() vfs.FS {
	switch {
	case o.FS != nil:
		return o.FS
	case o.inMemory():
		return vfs.NewMem()
	}
	return privateFS{vfs.Default}
}

func (o Options) dir() string {
	if o.inMemory() {
		return "tidemark"
	}
	return o.Dir
}

func (o Options) clock() func() time.Time {
	if o.Clock == nil {
		return time.Now
	}
	return o.Clock
}

func (o Options) gcInterval() time.Duration {
	if o.GCInterval == 0 {
		return defaultGCInterval
	}
	return o.GCInterval
}

func (o Options) cacheBytes() int64 {
	if o.CacheBytes <= 0 {
		return defaultCacheBytes
	}
	return o.CacheBytes
}

func (o Options) memTableBytes() uint64 {
	switch {
	case o.MemTableBytes > 0:
		return o.MemTableBytes
	case o.inMemory() && o.FS == nil:
		return defaultInMemoryMemTable
	}
	return defaultDiskMemTable
}

func (o Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}
