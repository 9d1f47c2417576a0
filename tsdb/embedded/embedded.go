// Package embedded opens a store in this process: one folder, nothing to install, no port, no network. It implements
// Bigtable's API with the module's own engine, and behaves as Cloud Bigtable does. To move a program to Cloud
// Bigtable, open its store with tsdb.Open instead.
//
//	store, err := embedded.Open(ctx, "./data")
//
// A write returns after it is on disk: no crash of the process loses it. Concurrent writers share one sync. One
// process at a time can open a folder; others attach to it (see Attach in Options). Expired points are removed in the
// background, and their space is freed.
//
// Use it for development, tests, edge devices and small installations. It is limited to one machine, and the folder is
// the only copy of the data but for backups (tsdb.Store.Backup). Programs that run only on Cloud Bigtable need not
// import this package, and then link none of it.
//
// # Memory
//
// If the program is built with cgo, two parts of a store in a folder are outside of Go's heap, and GOMEMLIMIT does
// not count them: blocks read from disk (CacheBytes), and writes that are not in a file yet (one buffer of 16 MiB, up
// to five under heavy writing). glibc's allocator keeps freed memory in arenas, about one per running thread. In 20
// minutes of mixed load on two processors, they grew to 262 MiB, and to 105 MiB with MALLOC_ARENA_MAX=1 in the
// environment (https://man7.org/linux/man-pages/man3/mallopt.3.html). Set this variable if memory is short, or build
// with CGO_ENABLED=0, which moves all of it into Go's heap. Both builds open the same folders, and the one without cgo
// is at least as fast.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/attach"
	"github.com/tidemark-go/tidemark/internal/backup"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Options configure a store in this process. The zero value is an empty store in memory.
type Options struct {
	tsdb.StoreOptions
	// Dir is the folder of the data. Open creates it if it does not exist. Empty is in memory: the store then loses
	// everything when it is closed.
	//
	// The folder has mode 0700 and its files have 0600, whatever the umask. Open removes other users' permissions
	// from an existing folder. It refuses a folder that others can write, unless it is empty, and symbolic links as
	// the folder or in it. Parent folders may be links. On Windows, modes are not checked.
	Dir string
	// Attach uses a folder that another process has open through that process, its owner, instead of failing with
	// tsdb.ErrLocked. If no process has the folder open, New opens it, and this process is the owner. Attach has no
	// effect in memory.
	//
	// The owner listens at a socket in the folder, which only its user can open, and speaks Bigtable's API there. So
	// the store does what it does in process, with the same guarantees; a call takes 0.2 ms more, many points three
	// times as long. What the owner's Options say about the folder applies: Clock, CacheBytes, GCInterval, Logger. A
	// write is on disk when it returns, also if the owner has NoSync. To use one folder, programs need the same version
	// of this module's protocol: New fails if they differ.
	//
	// When the owner ends, calls fail with codes.Unavailable, as when Bigtable cannot be reached: reads and writes that
	// can be repeated are, until their timeout, so calls outlast an owner that is started again within it. The outcome
	// of other writes under way is tsdb.ErrUnknown.
	//
	// The owner serves 16 connections, and 16 calls at a time on each; further calls wait. It takes requests of up to
	// 32 MiB, of which 8 writes at a time. Long reads of all processes take turns, and rest four fifths of the time
	// while anybody writes. After a process has attached to a folder once, tenants.Erase and its like wait for other
	// stores, as on Cloud Bigtable. If the path of the folder is longer than 100 bytes, a temporary folder with a link
	// is needed each time to listen or to attach.
	//
	// On Windows the owner listens on the loopback interface, and a file in the folder has a secret that a process must
	// know.
	Attach bool
	// TakeOver makes this process the owner if it is attached and the owner ends; of several such processes, one. Its
	// store's calls still pass the socket. TakeOver needs Attach.
	TakeOver bool
	// Exclusive lets no other process attach. The folder then has no socket, and no goroutine waits at it. A folder in
	// a bubble of testing/synctest needs Exclusive, because the bubble's time stands still while a goroutine waits for
	// the network.
	Exclusive bool
	// Table is the name of the table. Empty is "tidemark".
	Table string
	// Project and Instance are the names under which a Server offers the tables of the folder's stores, for clients
	// that use a project and an instance of their own. Empty is the constants Project and Instance. New ignores them.
	Project, Instance string
	// NoSync returns from writes before they are on disk, which makes small writes many times faster. A crash of the
	// process or of the machine then loses up to about the last half second of writes, but never a part of a point.
	NoSync bool
	// CacheBytes is the memory for blocks read from disk. Zero is 64 MiB. The newest points of entities may take a
	// quarter more.
	CacheBytes int64
	// GCInterval is how often expired points are removed. Zero is a minute, negative is never. Reads never return
	// them.
	GCInterval time.Duration
	// Logger receives the engine's log. Nil drops it.
	Logger *slog.Logger
	// DialOptions are added to the store's connection, behind the store's interceptors: theirs see each request. See
	// package heatmap. A Server ignores them.
	DialOptions []grpc.DialOption
	// ServerOptions are added to those of a Server: its interceptors see the requests of all clients. New ignores them.
	ServerOptions []grpc.ServerOption
}

// Open opens the store in a folder, or creates it. The error matches tsdb.ErrLocked or tsdb.ErrDamaged for these
// causes: services that must run once may rely on ErrLocked. If the file system refuses an operation, or the folder is
// not safe to use (Options.Dir), the error has the
// system's error, such as syscall.ENOSPC; the data is unchanged, and Open works again after the cause is removed. If
// the disk refuses a write later, each write fails with codes.DataLoss until the store is opened again, and so does
// each read that finds a write that may not be on disk.
//
// If ctx ends during Open, Open fails immediately; its work continues in the background and keeps the folder
// locked until it is done. The store does not use ctx after Open returns. After a crash, Open reads the writes since
// the last flush from the logs, up to 80 MB, and needs as much free space. An empty folder takes about 1 MB, because
// the log is allocated in advance.
func Open(ctx context.Context, dir string) (*tsdb.Store, error) {
	if dir == "" {
		return nil, errors.New("embedded: no folder given; New opens a store in memory")
	}
	return New(ctx, Options{Dir: dir})
}

// New opens a store with the given options: with the zero Options an empty one in memory.
func New(ctx context.Context, opts Options) (*tsdb.Store, error) {
	if err := ctxerr.Of(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(opts.checkAttach(), opts.absolute()); err != nil {
		return nil, err
	}
	server, err := openOrFind(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	if server == nil {
		return attachTo(ctx, opts)
	}
	store, in, err := connect(ctx, server.Dial, server.Close, opts)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	in.Service.Use(server.Watch())
	if opts.Dir != "" {
		server.AddJournals(func() []backup.Journal { return journalsOf(store) })
		inside.Of(store).BackUp(func(ctx context.Context, dir string) (tsdb.Backup, error) {
			return backUp(ctx, opts.Dir, dir, server.Checkpoint)
		})
	}
	in.Alone = func() bool { return opts.Dir == "" || !attach.Used(opts.Dir) }
	in.OnlyFirst = true
	return store, nil
}

// absolute makes the folder's name independent of the working folder, which may change.
func (o *Options) absolute() (err error) {
	if o.Dir != "" {
		o.Dir, err = filepath.Abs(o.Dir)
	}
	return err
}

// openServer opens a folder. It returns when ctx ends, because a disk that hangs would block the caller.
func openServer(ctx context.Context, o Options) (*local.Server, error) {
	type opened struct {
		server *local.Server
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		server, err := o.openHere()
		done <- opened{server, err}
	}()
	select {
	case s := <-done:
		return s.server, s.err
	case <-ctx.Done():
	}
	go func() {
		if s := <-done; s.err == nil {
			_ = s.server.Close() // no caller waits for it
		}
	}()
	return nil, ctxerr.Of(ctx)
}

// openHere opens the folder in this process, and lets others attach. A folder that cannot be shared is open
// nevertheless: not every file system has sockets.
func (o Options) openHere() (*local.Server, error) {
	server, err := local.Open(o.engine())
	if err != nil || o.Dir == "" || o.Exclusive {
		return server, err
	}
	if err := server.Share(o.Dir); err != nil && o.Logger != nil {
		o.Logger.Warn("other processes cannot attach to the folder", "error", err)
	}
	return server, nil
}

func (o Options) engine() engine.Options {
	opts := engine.Options{Dir: o.Dir, NoSync: o.NoSync, Clock: o.Clock, GCInterval: o.GCInterval, CacheBytes: o.CacheBytes, Logger: o.Logger}
	if o.Dir == "" && o.Clock != nil {
		opts.Steady = clock.Follow(o.Clock)
	}
	return opts
}

// connect returns a store on a connection that dial returns. The store's Close closes it, and then calls stop.
func connect(
	ctx context.Context, dial func(...grpc.DialOption) (*grpc.ClientConn, error), stop func() error, opts Options,
) (*tsdb.Store, inside.Store, error) {
	conn, err := dial(slices.Concat(tsdb.DialOptions(), opts.DialOptions)...)
	if err != nil {
		return nil, inside.Store{}, err
	}
	client, admin, err := local.Clients(ctx, conn)
	if err != nil {
		return nil, inside.Store{}, errors.Join(err, conn.Close())
	}
	store, err := tsdb.New(client, cmp.Or(opts.Table, "tidemark"), tsdb.Options{
		StoreOptions: opts.StoreOptions,
		Admin:        admin,
		OnClose:      func() error { return errors.Join(client.Close(), stop()) },
	})
	if err != nil {
		return nil, inside.Store{}, errors.Join(err, client.Close())
	}
	in, err := inside.Of(store).Internals()
	if err != nil {
		return nil, inside.Store{}, errors.Join(err, client.Close())
	}
	return store, in, nil
}
