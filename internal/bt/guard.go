package bt

import (
	"context"
	"io"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// DialOptions returns what puts the guard on a connection. The guard acts on this package's calls only; others on the same
// connection pass through it untouched.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(guardUnary),
		grpc.WithChainStreamInterceptor(guardStream),
	}
}

// errHandled is what the client is told of a guarded call that failed: a code that it does not retry.
var errHandled = status.Error(codes.Unknown, "tsdb: the guard has noted the service's answer")

// record is what the guard noted of one guarded call. It travels in the context and is read when the call has returned.
type record struct {
	context.Context // of the call, set by withRecord

	asks     bool                            // whether there is a guard: the call goes no further
	table    string                          // of a call that asks: the resource that it is for, with project and instance
	read     *rowRead                        // the call is a read, which the client may repeat
	samples  *[]Sample                       // the call is one for samples, which the client may repeat: they are noted with their offsets
	seen     bool                            // the call came by
	err      error                           // how the call ended
	answered bool                            // by at least one response, of a bulk write
	answers  []entryState                    // of a bulk write, by entry
	entries  []*btpb.MutateRowsRequest_Entry // of a bulk write: sent instead of the client's, if not nil
	stopped  bool                            // the caller has had enough of the rows: how the stream ends is its own doing
	broken   bool                            // the context ended between two rows of a read

	op     *telemetry.Op  // that the call is for; nil where nobody watches
	stream *watchedStream // the last one; nil where nobody watches
}

type entryState struct {
	answered bool
	err      error
}

type recordKey struct{}

func withRecord(ctx context.Context, r *record) context.Context {
	r.op = telemetry.From(ctx)
	r.Context = ctx
	return r
}

// Value implements context.Context: a record is the context of its call, which saves an allocation.
func (r *record) Value(key any) any {
	if key == (recordKey{}) {
		return r
	}
	return r.Context.Value(key)
}

func guardUnary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	rec, ok := ctx.Value(recordKey{}).(*record)
	if !ok || rec.seen { // seen by a guard further out, where a connection has two
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	rec.seen = true
	attempt := rec.op.Attempt(method)
	rec.err = invoker(ctx, method, req, reply, cc, opts...)
	attempt.End(rec.err)
	if rec.err != nil {
		return errHandled
	}
	return nil
}

func guardStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	rec, ok := ctx.Value(recordKey{}).(*record)
	if !ok || rec.seen {
		return streamer(ctx, desc, cc, method, opts...)
	}
	if rec.asks {
		rec.seen, rec.table = true, resource(ctx)
		return nil, errHandled
	}
	rec.seen = true
	if r := rec.read; r != nil && r.limit > 0 && r.visited >= r.limit {
		rec.seen = false
		return noRows{ctx: ctx}, nil
	}
	stream, err := watched(ctx, desc, cc, method, streamer, rec, opts)
	switch {
	case rec.samples != nil:
		rec.seen = false // the client may repeat the call
		*rec.samples = (*rec.samples)[:0]
		return sampledStream{ClientStream: stream, samples: rec.samples}, err
	case rec.read != nil:
		rec.seen = false
		if err != nil {
			rec.err = err
			return nil, err
		}
		return &rowStream{ClientStream: stream, read: rec.read}, nil
	case err != nil:
		rec.err = err
		return nil, errHandled
	}
	return &guardedStream{ClientStream: stream, rec: rec}, nil
}

// guardedStream notes each entry's answer, and shows the client a stream on which nothing is left to retry.
type guardedStream struct {
	grpc.ClientStream
	rec *record
}

func (s *guardedStream) SendMsg(m any) error {
	if req, ok := m.(*btpb.MutateRowsRequest); ok && s.rec.entries != nil {
		req.Entries = s.rec.entries
	}
	err := s.ClientStream.SendMsg(m)
	if err != nil && err != io.EOF {
		s.rec.err = err
		return errHandled
	}
	return err
}

func (s *guardedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil {
		if err != io.EOF {
			s.rec.err = err
		}
		return io.EOF
	}
	s.rec.answered = true
	res, ok := m.(*btpb.MutateRowsResponse)
	if !ok {
		return nil
	}
	stored := res.Entries[:0]
	for _, e := range res.Entries {
		if e.Index < 0 || e.Index >= int64(len(s.rec.answers)) || e.Status == nil {
			continue
		}
		a := entryState{answered: true}
		if e.Status.Code == int32(codes.OK) {
			stored = append(stored, e)
		} else {
			a.err = status.ErrorProto(e.Status)
		}
		s.rec.answers[e.Index] = a
	}
	// The client makes an error for each entry without an answer, and repeats none of them. The stored ones stay in the
	// response so that it makes no errors for them.
	res.Entries = stored
	return nil
}
