package history

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// link leads the calls of all stores to the engine that runs. It is below the faults of a store's own connection. If
// the engine goes down, the calls under way end without an answer, whatever the engine has done.
type link struct {
	engine atomic.Pointer[session] // nil while no engine runs
	pause  func() time.Duration    // before each response of a scan
}

// session is the time of one engine, until it goes down.
type session struct {
	conns []*grpc.ClientConn // of the stores in turn
	dead  atomic.Bool
}

var errDown = status.Error(codes.Unavailable, "the engine is down")

// up leads calls to an engine.
func (l *link) up(conns ...*grpc.ClientConn) { l.engine.Store(&session{conns: conns}) }

// of returns the connection of a store.
func (s *session) of(id int) *grpc.ClientConn { return s.conns[id%len(s.conns)] }

// down drops all answers from now on, and returns what closes the engine's connections.
func (l *link) down() (closeAll func()) {
	s := l.engine.Swap(nil)
	s.dead.Store(true)
	return func() {
		for _, conn := range s.conns {
			_ = conn.Close()
		}
	}
}

// of returns the interceptors that make the calls of a store in its connection's stead.
func (l *link) of(id int) []grpc.DialOption {
	way := storeLink{l, id}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(way.unary), grpc.WithChainStreamInterceptor(way.stream)}
}

// storeLink is the link of one store.
type storeLink struct {
	*link
	id int
}

// count counts a request of a call.
func count(ctx context.Context, req any) {
	sent, ok := ctx.Value(trafficKey{}).(*traffic)
	if !ok {
		return
	}
	switch req := req.(type) {
	case *btpb.ReadRowsRequest:
		sent.scan(req.Rows, !strips(req.Filter))
	case *btpb.MutateRowsRequest:
		for _, e := range req.Entries {
			sent.write(string(e.RowKey))
		}
	case interface{ GetRowKey() []byte }:
		sent.write(string(req.GetRowKey()))
	}
}

// strips reports whether a read returns no values. It finds entities, and has not seen what their points hold.
func strips(f *btpb.RowFilter) bool {
	return f.GetStripValueTransformer() || slices.ContainsFunc(f.GetChain().GetFilters(), strips)
}

func (l storeLink) unary(ctx context.Context, method string, req, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	s := l.engine.Load()
	if s == nil {
		return errDown
	}
	count(ctx, req)
	err := s.of(l.id).Invoke(ctx, method, req, reply, opts...)
	if s.dead.Load() {
		proto.Reset(reply.(proto.Message))
		return errDown
	}
	return err
}

func (l storeLink) stream(ctx context.Context, desc *grpc.StreamDesc, _ *grpc.ClientConn, method string, _ grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s := l.engine.Load()
	if s == nil {
		return nil, errDown
	}
	stream, err := s.of(l.id).NewStream(ctx, desc, method, opts...)
	if s.dead.Load() {
		return nil, errDown
	}
	if err != nil {
		return nil, err
	}
	return &linked{ClientStream: stream, session: s, link: l.link}, nil
}

// linked is a stream that ends with its engine. Writes pass it between two responses.
type linked struct {
	grpc.ClientStream
	session *session
	link    *link
}

func (s *linked) SendMsg(m any) error {
	count(s.Context(), m)
	return s.ClientStream.SendMsg(m)
}

func (s *linked) RecvMsg(m any) error {
	if d := s.link.pause(); d > 0 {
		time.Sleep(d)
	}
	err := s.ClientStream.RecvMsg(m)
	if s.session.dead.Load() {
		proto.Reset(m.(proto.Message))
		return errDown
	}
	return err
}

// dice is a source of chance that many goroutines use.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func newDice(seed, stream uint64) *dice { return &dice{rnd: rand.New(rand.NewPCG(seed, stream))} }

func (d *dice) intN(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(n)
}

// millis returns some milliseconds below n. In a bubble of synctest, whole milliseconds let goroutines wake up
// together.
func (d *dice) millis(n int) time.Duration { return time.Duration(d.intN(n)) * time.Millisecond }
