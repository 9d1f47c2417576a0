package tsdbtest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Conn is the connection between a store under test and its engine. It counts the calls and injects faults. Open
// returns one; a new one can be used with DialOptions. It is below the store's own interceptors, like the network, so
// the store sees a fault as it would see a network fault. It is safe for concurrent use.
type Conn struct {
	backend

	mu      sync.Mutex
	faults  []*active
	outages int
	counts  Counts
}

// Counts are the calls and rows that passed a Conn.
type Counts struct {
	// Calls are the store's calls by method, including attempts that a fault ended.
	Calls map[Method]int
	// Upkeep is how many more calls the store made in the background: periodic reads of erasure marks and of tenants'
	// classes. Faults apply to them, too.
	Upkeep int
	// UpkeepRows is how many rows those background calls returned.
	UpkeepRows int64
	// RowsReturned is how many rows the reads in Calls returned. RowsSeen is how many rows the engine read for them.
	RowsReturned, RowsSeen int64
}

type active struct {
	Fault
	seen int
}

// Inject adds a fault to the connection.
func (c *Conn) Inject(f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, &active{Fault: f})
}

// Clear removes all faults from the connection, and ends all outages.
func (c *Conn) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults, c.outages = nil, 0
}

// Outage makes every call fail with Unavailable before it reaches the engine, until the caller calls the returned
// function or Clear. Calls succeed again when all outages have ended.
func (c *Conn) Outage() (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outages++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.outages = max(0, c.outages-1)
	})
}

// Counts returns the counts since the start or the last Reset.
func (c *Conn) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	counts.Calls = maps.Clone(counts.Calls)
	return counts
}

// Reset sets all counts to zero.
func (c *Conn) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = Counts{Calls: map[Method]int{}}
}

// Collect removes the cells that the families' policies no longer keep at the store's time, as Bigtable does in the
// background, and returns when all are removed. The stores of this package never collect by themselves. Faults do not
// apply, because no call of the store is involved.
func (c *Conn) Collect(ctx context.Context) error {
	if c.server == nil {
		return invalid.New(tsdb.ErrInvalid, "connection", "the zero value", "a connection from Open")
	}
	return c.server.Collect(ctxerr.Given(ctx))
}

// dataService is what the full names of the data API's methods start with.
const dataService = "/google.bigtable.v2.Bigtable/"

// begin counts a call and returns its faults.
func (c *Conn) begin(ctx context.Context, m Method) plan {
	var p plan
	faults, outage := c.due(m, bt.Upkeep(ctx))
	for _, f := range faults {
		p.add(f)
	}
	if outage {
		p.before = fault(codes.Unavailable, "before")
	}
	return p
}

// due counts a call and returns the faults that apply to it.
func (c *Conn) due(m Method, upkeep bool) (faults []Fault, outage bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts.Calls == nil {
		c.counts.Calls = map[Method]int{}
	}
	if upkeep {
		c.counts.Upkeep++
	} else {
		c.counts.Calls[m]++
	}
	c.faults = slices.DeleteFunc(c.faults, func(f *active) (over bool) {
		if f.method != "" && f.method != m {
			return false
		}
		f.seen++
		if f.seen > f.skip {
			faults = append(faults, f.Fault)
		}
		return f.times > 0 && f.seen >= f.skip+f.times
	})
	return faults, c.outages > 0
}

func (c *Conn) countRows(stats *btpb.RequestStats, upkeep bool) {
	it := stats.GetFullReadStatsView().GetReadIterationStats()
	c.mu.Lock()
	defer c.mu.Unlock()
	if upkeep {
		c.counts.UpkeepRows += it.GetRowsReturnedCount()
		return
	}
	c.counts.RowsReturned += it.GetRowsReturnedCount()
	c.counts.RowsSeen += it.GetRowsSeenCount()
}

// DialOptions returns the interceptors that count the calls and inject the faults, for a store that the test opens
// itself: several stores on one table, or a server in another process. They come after those of tsdb.DialOptions. The
// Conn can be a new one; its Collect and Clients then fail.
func (c *Conn) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(c.unary), grpc.WithChainStreamInterceptor(c.stream)}
}

func (c *Conn) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	name, ok := strings.CutPrefix(method, dataService)
	if !ok {
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	p := c.begin(ctx, Method(name))
	if err := p.start(ctx); err != nil {
		return err
	}
	if p.repeat {
		_ = invoker(ctx, method, req, reply, cc, opts...)
		proto.Reset(reply.(proto.Message))
	}
	err := invoker(ctx, method, req, reply, cc, opts...)
	if p.lose != nil {
		proto.Reset(reply.(proto.Message))
		return p.lose
	}
	return err
}

// start waits for the delay and returns the error that comes before the call.
func (p plan) start(ctx context.Context) error {
	if p.delay > 0 && ctxerr.Wait(ctx, p.delay) != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return p.before
}
