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

// DialOptions returns the interceptors that guard a connection. They act only on calls of this package. Other calls on
// the same connection pass unchanged.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(guardUnary),
		grpc.WithChainStreamInterceptor(guardStream),
	}
}

// errHandled is the error that the client gets for a guarded call that failed: its code is one that the client does not
// retry.
var errHandled = status.Error(codes.Unknown, "tsdb: the guard has noted the service's answer")

// record holds the result of one guarded call. The guard finds it in the call's context and fills it in. The caller
// reads it after the call has returned.
type record struct {
	context.Context // of the call, set by withRecord

	asks     bool                            // the call only tests whether there is a guard, and is not sent
	table    string                          // set by the guard if asks is: the full name of the call's table or view
	read     *rowRead                        // set for a read, which the client may repeat
	samples  *[]Sample                       // set for a read of sampled row keys, which the client may repeat
	seen     bool                            // the guard has handled the call
	err      error                           // the call's own error
	answered bool                            // a bulk write got at least one response
	answers  []entryState                    // the results of a bulk write, by entry
	entries  []*btpb.MutateRowsRequest_Entry // if not nil, a bulk write sends these instead of the client's entries
	row      *rowMutations                   // if not nil, a write of one row sends these instead of the client's row
	token    *btpb.Idempotency               // of a write of one row that adds; the guard sends it
	tokens   []*btpb.Idempotency             // of a bulk write that adds, by entry
	stopped  bool                            // a read has all that it wants, so the stream's error means nothing
	broken   bool                            // the context ended between two rows of a read
	limit    *RateLimit                      // if not nil, a bulk write announces that it follows the service's advice, which goes here

	op     *telemetry.Op  // the operation of the call; nil if telemetry is disabled
	stream *watchedStream // the last stream; nil if telemetry is disabled
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
	if !ok || rec.seen { // on a connection with two guards the outer one has handled the call
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	rec.seen = true
	if write, ok := req.(*btpb.MutateRowRequest); ok {
		if rec.row != nil {
			write.RowKey, write.Mutations = rec.row.keys, rec.row.ops
		}
		if rec.token != nil {
			write.Idempotency = rec.token
		}
	}
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
	if r := rec.read; r != nil {
		r.first = behind(r.first, r.last)
		if r.limit > 0 && r.visited >= r.limit { // the attempts before have left no rows
			rec.stopped = true
			return nil, errHandled
		}
	}
	if rec.limit != nil {
		ctx = AnnounceRateLimit(ctx)
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

// guardedStream records the result of each entry, and leaves the client nothing to retry.
type guardedStream struct {
	grpc.ClientStream
	rec *record
}

func (s *guardedStream) SendMsg(m any) error {
	if req, ok := m.(*btpb.MutateRowsRequest); ok {
		if s.rec.entries != nil {
			req.Entries = s.rec.entries
		}
		for n, token := range s.rec.tokens {
			req.Entries[n].Idempotency = token
		}
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
	if s.rec.limit != nil {
		s.rec.limit.note(res.GetRateLimitInfo())
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
	// The client makes an error for each entry without a result, and repeats none of them. Stored entries stay in the
	// response, which saves making errors for them.
	res.Entries = stored
	return nil
}
