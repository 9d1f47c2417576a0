package engine

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configures an engine. The zero value is an engine in memory that syncs each write.
type Options struct {
	// Dir is the folder that holds the data; it is created if it does not exist. Only the owner may access it and its
	// files: private.Folder sets and checks the modes. Empty means in memory: Close discards everything.
	Dir string
	// FS is the file system that holds Dir. Modes are checked only in the operating system's. Nil means the operating
	// system's, or a new one in memory if Dir is empty. Tests pass their own to reopen it or to make it fail.
	FS vfs.FS
	// NoSync acknowledges writes before they are on disk; they get there within about half a second, and on Close. A
	// crash of the machine loses the writes of that time, a crash of the process the last few, but never part of a
	// row's mutation. Changes of tables are still synced.
	NoSync bool
	// Clock supplies server timestamps and determines the age of cells. Nil means time.Now.
	Clock func() time.Time
	// Steady returns elapsed time by a clock that nobody sets. While Clock is ahead of it, nothing is collected. Nil
	// means the process's monotonic clock; the engine then also stores the time in the folder. Tests that move Clock
	// move Steady too.
	Steady func() time.Duration
	// GCInterval is the time between two passes that remove what the families' GC rules no longer keep; the first
	// begins after 5 seconds at most. A pass works about a twentieth of its duration and rests otherwise, so a pass
	// over a large store takes hours. 0 means one minute, negative means never (RunGC still works).
	GCInterval time.Duration
	// CacheBytes is the memory for blocks read from disk, in bytes. 0 means 64 MiB. A quarter more may hold first rows.
	CacheBytes int64
	// MemTableBytes is the memory, in bytes, of one buffer for writes that are in the log but not in a table file yet.
	// Usually one buffer is in use, under heavy writing up to five. 0 means 16 MiB on disk and 4 MiB in memory.
	MemTableBytes uint64
	// Weak is for tests of callers: a scan sees each row in the state at the time at which it returns the row. Bigtable
	// promises no more than that. Without Weak a scan sees all rows in the state at its beginning.
	Weak bool
	// Logger receives the storage's messages. Nil means no logging.
	Logger *slog.Logger
}

const (
	defaultGCInterval       = time.Minute
	defaultCacheBytes       = 64 << 20
	defaultDiskMemTable     = 16 << 20
	defaultInMemoryMemTable = 4 << 20
)

func (o Options) inMemory() bool { return o.Dir == "" }

// volatile reports whether nothing outlives the engine, so that no write needs a sync.
func (o Options) volatile() bool { return o.inMemory() && o.FS == nil }

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
	return cmp.Or(o.Dir, "tidemark")
}

func (o Options) clock() func() time.Time {
	if o.Clock == nil {
		return time.Now
	}
	return o.Clock
}

func (o Options) gcInterval() time.Duration {
	return cmp.Or(o.GCInterval, defaultGCInterval)
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
	case o.volatile():
		return defaultInMemoryMemTable
	}
	return defaultDiskMemTable
}

func (o Options) logger() *slog.Logger {
	return cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
}
