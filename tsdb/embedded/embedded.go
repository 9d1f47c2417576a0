// Package embedded opens a store in this process: one folder, nothing to install, no port, no network. It is Bigtable's
// API on an engine of the module's own, and behaves as Cloud Bigtable does; a program moves there by opening its store with
// tsdb.Open instead.
//
//	store, err := embedded.Open(ctx, "./data")
//
// A write is answered when it is on disk: kill the process at any moment, and each answered write is there. Writers that
// come at the same time share one sync. One process at a time may open a folder. Points that have expired are removed in
// the background and their space is given back.
//
// It is for development, tests, edge boxes and small installations: it is bounded by one machine, and its only copy of the
// data is the folder. Programs that run on Cloud Bigtable only need not import this package, and then link none of it.
//
// # Memory
//
// Of a store in a folder, blocks that were read (CacheBytes) and writes that are not in a file yet (one buffer of 16 MiB, up to
// five under heavy writing) lie outside of Go's heap where the program is built with cgo, and no GOMEMLIMIT counts them.
// glibc's allocator keeps what they gave back in arenas, one for about each thread that runs: in 20 minutes of mixed load on
// two processors that came to 262 MiB, and to 105 MiB with MALLOC_ARENA_MAX=1 in the environment
// (https://man7.org/linux/man-pages/man3/mallopt.3.html). Set it where memory is short, or build with CGO_ENABLED=0, which puts
// all of it into Go's heap.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
)

// The errors of a folder, to tell apart with errors.Is.
var (
	// ErrLocked: another process, or another store of this one, has the folder open.
	ErrLocked = engine.ErrLocked
	// ErrDamaged: what is on disk is not what was written. Nothing of it is served.
	ErrDamaged = engine.ErrDamaged
	// ErrStorage: the file system refused an operation. The disk or the quota is full, it cannot be written, or the process
	// has too many files open. The system's error is wrapped too: errors.Is(err, syscall.ENOSPC). The folder holds what it
	// held before and can be opened again once the cause is gone. It is also the error of a folder that is not safe to use, as
	// Options.Dir describes.
	//
	// On an open store, ErrStorage says that the disk refused a write. The store takes no more of them until it is opened again:
	// each write fails with it at once, as does a read that finds a write that may not be on disk.
	ErrStorage = engine.ErrStorage
)

// Options are what a store in this process may decide. The zero value is an empty store in memory.
type Options struct {
	tsdb.StoreOptions
	// Dir is the folder that holds the data, made where it does not exist. Empty is in memory: the store then forgets
	// everything when it is closed.
	//
	// The folder has mode 0700 and its files have 0600, whatever the umask; Open takes other users' rights from a folder that
	// exists. It refuses a folder that others can write, unless it is empty, and a symbolic link as the folder or in it. Parents may
	// be links. On Windows modes are not looked at.
	Dir string
	// Table is the name of the table. Empty is "tidemark".
	Table string
	// Project and Instance are the names under which a Server offers the tables of the folder's stores, for clients that are set
	// up for a project and an instance of their own. Empty is the constants Project and Instance. New does not use them.
	Project, Instance string
	// NoSync answers writes before they are on disk, which makes small writes many times faster. A crash of the process
	// or of the machine then loses up to about the last half second of answered writes; never half a point.
	NoSync bool
	// CacheBytes is the memory for blocks read from disk. Zero is 64 MiB.
	CacheBytes int64
	// GCInterval is how often expired points are removed. Zero is a minute, negative is never. Reads never show them.
	GCInterval time.Duration
	// Logger receives what the engine has to say. Nil drops it.
	Logger *slog.Logger
}

// Open opens the store in a folder, or makes one there. Its error matches ErrLocked, ErrDamaged or ErrStorage where that is
// the reason. A ctx that ends meanwhile fails it at once: what Open has begun goes on in the background, and keeps the folder
// locked until it is done. A ctx that ends later does nothing to the store. After a crash, Open reads the writes since the
// last flush from the logs, up to 80 MB, and needs as much free space. A folder takes about 1 MB before the first point,
// as the log is laid out ahead.
func Open(ctx context.Context, dir string) (*tsdb.Store, error) {
	if dir == "" {
		return nil, errors.New("embedded: no folder given; OpenMemory opens a store in memory")
	}
	return New(ctx, Options{Dir: dir})
}

// OpenMemory opens an empty store in memory. It forgets everything when it is closed.
func OpenMemory(ctx context.Context) (*tsdb.Store, error) { return New(ctx, Options{}) }

// New opens a store as the options say.
func New(ctx context.Context, opts Options) (*tsdb.Store, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	server, err := openServer(ctx, opts.engine())
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	store, err := connect(ctx, server, opts)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return store, nil
}

// openServer opens a folder, and gives it up when ctx ends: a disk that hangs would hold the caller.
func openServer(ctx context.Context, o engine.Options) (*local.Server, error) {
	type opened struct {
		server *local.Server
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		server, err := local.Open(o)
		done <- opened{server, err}
	}()
	select {
	case s := <-done:
		return s.server, s.err
	case <-ctx.Done():
	}
	go func() {
		if s := <-done; s.err == nil {
			_ = s.server.Close() // nobody waits for it
		}
	}()
	return nil, ctxerr.Of(ctx)
}

func (o Options) engine() engine.Options {
	opts := engine.Options{Dir: o.Dir, NoSync: o.NoSync, Clock: o.Clock, GCInterval: o.GCInterval, CacheBytes: o.CacheBytes, Logger: o.Logger}
	if o.Dir == "" && o.Clock != nil {
		opts.Steady = clock.Follow(o.Clock)
	}
	return opts
}

func connect(ctx context.Context, server *local.Server, opts Options) (*tsdb.Store, error) {
	conn, err := server.Dial(tsdb.DialOptions()...)
	if err != nil {
		return nil, err
	}
	client, admin, err := local.Clients(ctx, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	store, err := tsdb.New(client, cmp.Or(opts.Table, "tidemark"), tsdb.Options{
		StoreOptions: opts.StoreOptions,
		Admin:        admin,
		OnClose:      func() error { return errors.Join(client.Close(), server.Close()) },
	})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	in, err := inside.OfStore(store)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	in.WatchClock(server.Watch())
	in.SetAlone()
	return store, nil
}
