package bt

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// watched opens a stream. The attempt of the record's operation ends when the stream ends.
func watched(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, rec *record, opts []grpc.CallOption) (grpc.ClientStream, error) {
	if rec.op == nil {
		return streamer(ctx, desc, cc, method, opts...)
	}
	attempt := rec.op.Attempt(method)
	stream, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		attempt.End(unlessNotNeeded(ctx, err))
		return stream, err
	}
	rec.stream = &watchedStream{ClientStream: stream, ctx: ctx, rec: rec, attempt: attempt}
	return rec.stream, nil
}

// abandoned ends the attempt of a stream that the client gave up with err before its end.
func (r *record) abandoned(err error) {
	if r.stream != nil {
		r.stream.end(err)
	}
}

// ErrNotNeeded is the cause of a context that ends because another request has answered or because the answer is no
// longer needed. A request that it cancels did not fail.
var ErrNotNeeded = errors.New("bt: not needed any more")

// watchedStream ends an attempt when its stream ends. The client reads each stream to its end, even one that it has
// cancelled, except if it cannot parse the rows or if the caller panics.
type watchedStream struct {
	grpc.ClientStream
	ctx     context.Context
	rec     *record
	attempt telemetry.Attempt
	over    bool
}

func (s *watchedStream) SendMsg(m any) error {
	err := s.ClientStream.SendMsg(m)
	if err != nil && err != io.EOF { // after EOF, RecvMsg returns the cause
		s.end(err)
	}
	return err
}

func (s *watchedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err == nil:
	case err == io.EOF || s.rec.stopped:
		s.end(nil)
	default:
		s.end(err)
	}
	return err
}

func (s *watchedStream) end(err error) {
	if !s.over {
		s.over = true
		s.attempt.End(unlessNotNeeded(s.ctx, err))
	}
}

func unlessNotNeeded(ctx context.Context, err error) error {
	if err != nil && context.Cause(ctx) == ErrNotNeeded {
		return nil
	}
	return err
}
