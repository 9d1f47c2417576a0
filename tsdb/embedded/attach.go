package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/attach"
	"github.com/tidemark-go/tidemark/internal/backup"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
)

// A process has a folder's lock before it serves others, and still has it after. So one that attaches looks for either
// for a while.
var ownerWait = 5 * time.Second // tests change it

const ownerPoll = 20 * time.Millisecond

func (o Options) checkAttach() error {
	switch {
	case o.TakeOver && !o.Attach:
		return invalid.New(tsdb.ErrInvalid, "TakeOver", "true", "false without Attach")
	case o.TakeOver && o.Exclusive:
		return invalid.New(tsdb.ErrInvalid, "Exclusive", "true", "false with TakeOver: the store would be attached to its own process")
	}
	return nil
}

// openOrFind opens the folder. With Attach it returns nil if another process has the folder open, and serves it.
func openOrFind(ctx context.Context, o Options) (*local.Server, error) {
	for until := time.Now().Add(ownerWait); ; {
		server, err := openServer(ctx, o)
		if o.Dir == "" || !o.Attach || !errors.Is(err, tsdb.ErrLocked) {
			return server, err
		}
		conn, missing := attach.Dial(ctx, o.Dir)
		switch {
		case missing == nil:
			return nil, conn.Close()
		case errors.Is(missing, attach.ErrRefused), !time.Now().Before(until):
			return nil, fmt.Errorf("%w: %w", tsdb.ErrLocked, missing)
		}
		if err := ctxerr.Wait(ctx, ownerPoll); err != nil {
			return nil, err
		}
	}
}

// guest is a store's connection to the owner of its folder.
type guest struct {
	opts  Options
	store atomic.Pointer[tsdb.Store]

	mu     sync.Mutex
	own    *local.Server // once this process is the owner
	closed bool
}

// attachTo returns a store that uses the folder through its owner.
func attachTo(ctx context.Context, o Options) (*tsdb.Store, error) {
	g, dir := &guest{opts: o}, o.Dir
	var conn *grpc.ClientConn
	dial := func(opts ...grpc.DialOption) (_ *grpc.ClientConn, err error) {
		conn, err = attach.Conn(g.dial, opts...)
		return conn, err
	}
	store, _, err := connect(ctx, dial, g.close, o)
	if err != nil {
		return nil, err
	}
	g.store.Store(store)
	inside.Of(store).BackUp(func(ctx context.Context, to string) (tsdb.Backup, error) {
		if own := g.owner(); own != nil {
			return backUp(ctx, dir, to, own.Checkpoint)
		}
		owner := func(ctx context.Context) (string, func() error, error) { return attach.Checkpoint(ctx, conn, dir) }
		return backUp(ctx, dir, to, backup.With(journalsOf(store), owner))
	})
	return store, nil
}

// dial connects to the owner. If there is none, it makes this process the owner, if it may.
func (g *guest) dial(ctx context.Context) (net.Conn, error) {
	conn, err := attach.Dial(ctx, g.opts.Dir)
	if err == nil || !g.opts.TakeOver || errors.Is(err, attach.ErrRefused) {
		return conn, err
	}
	if failed := g.takeOver(ctx); failed != nil {
		return nil, fmt.Errorf("%w; taking over: %w", err, failed)
	}
	return attach.Dial(ctx, g.opts.Dir)
}

// takeOver opens the folder. The store's connection then leads to this process, so nothing above it changes.
func (g *guest) takeOver(ctx context.Context) error {
	server, err := openServer(ctx, g.opts)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.Join(tsdb.ErrClosed, server.Close())
	}
	server.AddJournals(func() []backup.Journal {
		if store := g.store.Load(); store != nil {
			return journalsOf(store)
		}
		return nil // it is being opened
	})
	g.own = server
	return nil
}

// owner returns the server of the folder, if it is in this process.
func (g *guest) owner() *local.Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.own
}

func (g *guest) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.own == nil {
		return nil
	}
	return g.own.Close()
}
