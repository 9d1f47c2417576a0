package attach

import (
	"context"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// What attached processes may take of their owner. One that asks for more waits.
const (
	maxCalls    = 16        // calls under way on a connection
	maxWrites   = 8         // writes under way of all connections
	maxRequest  = 32 << 20  // bytes; the store's largest write is a point of 10 MiB and its head
	maxResponse = 256 << 20 // bytes; the largest row
	// shortRead is how long a read may work without regard to others. Then it takes turns: one of them works at a time.
	shortRead = 5 * time.Millisecond
	// restShare is how long such a read rests between two responses while there are writes, in times of its work.
	restShare = 4
)

// bounds are interceptors that keep calls within bounds, and make writes durable.
type bounds struct {
	engine Engine
	writes chan struct{}
	turn   chan struct{} // of long reads
}

func newBounds(e Engine) *bounds {
	return &bounds{engine: e, writes: make(chan struct{}, maxWrites), turn: make(chan struct{}, 1)}
}

func (b *bounds) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (resp any, err error) {
	switch req.(type) {
	case *bigtablepb.MutateRowRequest, *bigtablepb.CheckAndMutateRowRequest, *bigtablepb.ReadModifyWriteRowRequest:
		if err := take(ctx, b.writes); err != nil {
			return nil, err
		}
		defer func() { <-b.writes }()
		if resp, err = handle(ctx, req); err == nil {
			err = b.sync(ctx)
		}
		return resp, err
	}
	return handle(ctx, req)
}

func (b *bounds) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	switch info.FullMethod {
	case bigtablepb.Bigtable_MutateRows_FullMethodName:
		if err := take(s.Context(), b.writes); err != nil {
			return err
		}
		defer func() { <-b.writes }()
		return handle(srv, durable{s, b})
	case bigtablepb.Bigtable_ReadRows_FullMethodName:
		r := &read{ServerStream: s, bounds: b, began: time.Now()}
		defer r.give()
		return handle(srv, r)
	}
	return handle(srv, s)
}

// sync makes a write durable that an owner with NoSync has made. Its process may hold it for durable.
func (b *bounds) sync(ctx context.Context) error {
	if err := b.engine.Sync(context.WithoutCancel(ctx)); err != nil {
		return status.Errorf(codes.Unavailable, "the write was made, and may not be on disk: %v", err)
	}
	return nil
}

func take(ctx context.Context, from chan struct{}) error {
	select {
	case from <- struct{}{}:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// durable is a stream of writes.
type durable struct {
	grpc.ServerStream
	*bounds
}

// SendMsg implements grpc.ServerStream.
func (d durable) SendMsg(m any) error {
	if err := d.sync(d.Context()); err != nil {
		return err
	}
	return d.ServerStream.SendMsg(m)
}

// read is a stream of rows.
type read struct {
	grpc.ServerStream
	*bounds
	began  time.Time     // of the work for the next response
	worked time.Duration // for all responses
	wrote  uint64        // what Wrote returned last
	has    bool          // the turn
}

// SendMsg implements grpc.ServerStream. It returns when the read may work on its next response.
func (r *read) SendMsg(m any) error {
	worked := time.Since(r.began)
	r.worked += worked
	r.give() // sending waits for the client
	if err := r.ServerStream.SendMsg(m); err != nil {
		return err
	}
	if r.worked > shortRead {
		if err := r.wait(worked * restShare); err != nil {
			return err
		}
	}
	r.began = time.Now()
	return nil
}

// wait rests if there are writes, and then waits for the turn.
func (r *read) wait(rest time.Duration) error {
	now, wrote := r.engine.Wrote(r.wrote)
	if r.wrote = now; wrote {
		if err := ctxerr.Wait(r.Context(), rest); err != nil {
			return status.FromContextError(err).Err()
		}
	}
	err := take(r.Context(), r.turn)
	r.has = err == nil
	return err
}

// give gives the turn up.
func (r *read) give() {
	if r.has {
		r.has = false
		<-r.turn
	}
}
