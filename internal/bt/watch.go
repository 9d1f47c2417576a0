package bt

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// watched opens a stream, which ends an attempt of the record's operation when it ends itself.
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

// ErrNotNeeded is the cause of a context that ends as another request has answered already, or as nobody wants the answer any
// more. What is broken off for it did not fail.
var ErrNotNeeded = errors.New("bt: not needed any more")

// watchedStream tells how an attempt ends. The client reads each stream to its end, also one that it has broken off; but not
// where rows make no sense to it, or where who takes them panics.
type watchedStream struct {
	grpc.ClientStream
	ctx     context.Context
	rec     *record
	attempt telemetry.Attempt
	over    bool
}

func (s *watchedStream) SendMsg(m any) error {
	err := s.ClientStream.SendMsg(m)
	if err != nil && err != io.EOF { // where it is EOF, RecvMsg says why
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
