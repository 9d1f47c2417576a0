package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/clock"
)

// Engine is an open store. It is safe for concurrent use.
type Engine struct {
	bigtablepb.UnimplementedBigtableServer
	adminpb.UnimplementedBigtableTableAdminServer

	fs     vfs.FS
	dir    string
	db     *pebble.DB
	lock   *pebble.Lock
	clock  func() time.Time
	watch  *clock.Watch
	log    *slog.Logger
	fault  *fault
	noSync bool
	weak   bool
	// memory means that nothing is on disk.
	memory bool
	// unsynced means that there were writes since the last sync. Used only with noSync.
	unsynced atomic.Bool

	seed     maphash.Seed
	rows     rowLocks
	inFlight inFlight
	first    firstRows
	// forgotten is the first period whose tokens are not forgotten.
	forgotten atomic.Uint64

	// gate is locked for reading by each operation while it uses db, and for writing by Close.
	gate    sync.RWMutex
	closed  bool        // under gate
	closing atomic.Bool // Close waits for gate: long operations must end early

	readers  readerSet
	cleanups *cleanups
	pressure *pressure

	// admin serializes changes of tables; lookups read the maps without it.
	admin     sync.Mutex
	tables    atomic.Pointer[map[string]*table]
	nextTable uint32 // under admin

	checkpoints sync.Mutex // one checkpoint at a time is made

	collecting sync.Mutex // one garbage collection at a time
	saved      time.Time  // when the time was last written to the folder; guarded by collecting
	remembers  bool       // the engine writes the time to the folder
	stop       context.CancelFunc
	background sync.WaitGroup
}

// Open opens the store in Options.Dir, and creates it if there is none. Errors are ErrLocked, ErrDamaged, ErrVersion,
// ErrForeign and ErrStorage. After ErrStorage the folder holds what it held before, and opens once the file system
// allows it.
func Open(o Options) (*Engine, error) {
	e := &Engine{
		clock: o.clock(), log: o.logger(), fault: newFault(o.NoSync), pressure: newPressure(maxMemTables * o.memTableBytes()),
		cleanups: newCleanups(), inFlight: inFlight{left: leftStates{wake: make(chan struct{}, 1)}},
		first:  firstRows{seed: maphash.MakeSeed(), most: int(o.cacheBytes()) / firstRowsShare / firstRowsShards / 2},
		noSync: o.NoSync || o.volatile(), weak: o.Weak, memory: o.inMemory(), seed: maphash.MakeSeed(),
	}
	e.watch, e.remembers = clock.New(e.clock, o.Steady), o.Steady == nil && !o.inMemory()
	e.fs, e.dir = o.fs(), o.dir()
	db, lock, err := openStorage(o, e.fs, e.fault, e.pressure)
	if err != nil {
		return nil, openFailure(err)
	}
	e.db, e.lock = db, lock
	err = errors.Join(e.loadTables(), e.loadForgotten())
	if err == nil && e.remembers {
		err = e.resumeClock()
	}
	if err != nil {
		return nil, errors.Join(err, db.Close(), lock.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	if interval := o.gcInterval(); interval > 0 {
		e.background.Go(func() { e.collectForever(ctx, interval) })
	}
	e.background.Go(func() { e.cleanForever(ctx) })
	e.background.Go(func() { e.pauseForever(ctx) })
	e.background.Go(func() { e.inFlight.left.closeForever(ctx) })
	if o.NoSync {
		e.background.Go(func() { e.syncForever(ctx) })
	}
	return e, nil
}

// Close ends running reads, waits for operations that have begun, and closes the store. All later calls return
// ErrClosed, including a second Close.
func (e *Engine) Close() error {
	e.stop()
	e.closing.Store(true)
	e.gate.Lock()
	if e.closed {
		e.gate.Unlock()
		return ErrClosed
	}
	e.closed = true
	e.gate.Unlock()
	e.readers.closeAll()
	e.background.Wait()
	err := e.closeDB()
	return errors.Join(err, e.lock.Close())
}

func (e *Engine) closeDB() (err error) {
	// If the log has failed, Pebble's own shutdown can panic; the failure was reported before.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: closing: %v", ErrStorage, r)
		}
	}()
	if e.fault.err() == nil {
		if e.remembers {
			if err := e.saveClock(); err != nil {
				e.log.Warn("writing the time at close", "error", err)
			}
		}
		// Table files are checked by checksum when they are read, but the end of a damaged log can look like a torn
		// write.
		if err := e.flush(context.Background()); err != nil {
			e.log.Warn("flush at close", "error", err)
		}
	}
	e.inFlight.close()
	return e.db.Close()
}

// Register registers the engine's two services with a gRPC server.
func (e *Engine) Register(r grpc.ServiceRegistrar) {
	bigtablepb.RegisterBigtableServer(r, e)
	adminpb.RegisterBigtableTableAdminServer(r, e)
}

// Err returns the failure that ended writing, or nil.
func (e *Engine) Err() error { return e.fault.err() }

// enter begins an operation on the store. On success, leave ends it.
func (e *Engine) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.gate.RLock()
	if e.closed {
		e.gate.RUnlock()
		return ErrClosed
	}
	if e.fault.broken.Load() {
		e.gate.RUnlock()
		return e.fault.err()
	}
	return nil
}

// enterWrite begins an operation that changes the store.
func (e *Engine) enterWrite(ctx context.Context) error {
	if err := e.makeRoom(ctx); err != nil {
		return err
	}
	if err := e.enter(ctx); err != nil {
		return err
	}
	if err := e.fault.err(); err != nil {
		e.leave()
		return err
	}
	return nil
}

func (e *Engine) leave() { e.gate.RUnlock() }

// stopReason returns an error if a long operation must end: its context has ended, or Close waits for it.
func (e *Engine) stopReason(ctx context.Context) error {
	if e.closing.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

// micros returns the time in microseconds since 1970.
func (e *Engine) micros() int64 { return max(e.clock().UnixMicro(), 0) }

// PingAndWarm implements the service's method.
func (e *Engine) PingAndWarm(ctx context.Context, _ *bigtablepb.PingAndWarmRequest) (*bigtablepb.PingAndWarmResponse, error) {
	if err := e.enter(ctx); err != nil {
		return nil, statusOf(err)
	}
	defer e.leave()
	return &bigtablepb.PingAndWarmResponse{}, nil
}
