package inproc

import (
	"context"
	"errors"
	"io"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/engine"
)

// stream is the innermost interceptor of streams. It calls the engine instead of the transport.
func (c *caller) stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, _ grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if err := ready(ctx, cc); err != nil {
		return nil, err
	}
	before(opts)
	return &clientStream{engine: c.engine, ctx: ctx, method: method, opts: opts}, nil
}

// clientStream is a stream with one request. It allows one sender and one receiver at a time.
type clientStream struct {
	engine *engine.Engine
	ctx    context.Context
	method string
	opts   []grpc.CallOption

	err     error                       // found when sending, returned when receiving, as over the network
	read    *bigtablepb.ReadRowsRequest // set until the read begins
	reader  *engine.Reader
	mutated *bigtablepb.MutateRowsResponse
	samples []*bigtablepb.SampleRowKeysResponse
	ended   bool
}

func (s *clientStream) Header() (metadata.MD, error) { return metadata.MD{}, nil }
func (s *clientStream) Trailer() metadata.MD         { return metadata.MD{} }
func (s *clientStream) CloseSend() error             { return nil }
func (s *clientStream) Context() context.Context     { return s.ctx }

// SendMsg sends the request. A read begins at the first RecvMsg: a client may abandon the stream before by ending its
// context, and nothing would release the read.
func (s *clientStream) SendMsg(m any) error {
	switch req := m.(type) {
	case *bigtablepb.ReadRowsRequest:
		s.read = req
	case *bigtablepb.MutateRowsRequest:
		s.mutated, s.err = s.engine.MutateRowsAll(s.ctx, req)
	case *bigtablepb.SampleRowKeysRequest:
		s.samples, s.err = s.engine.SampleRowKeysAll(s.ctx, req)
	default:
		s.err = status.Errorf(codes.Unimplemented, "method %s is not offered", s.method)
	}
	return nil
}

// RecvMsg receives the next response.
func (s *clientStream) RecvMsg(m any) error {
	err := s.receive(m)
	if err != nil && !s.ended {
		s.ended = true
		if errors.Is(err, io.EOF) {
			after(s.opts, nil)
		} else {
			after(s.opts, err)
		}
	}
	return err
}

func (s *clientStream) receive(m any) error {
	if s.read != nil {
		s.reader, s.err = s.engine.NewReader(s.ctx, s.read)
		s.read = nil
	}
	switch {
	case s.err != nil:
		return s.err
	case s.reader != nil:
		out, ok := m.(*bigtablepb.ReadRowsResponse)
		if !ok {
			return wrongMessage(s.method, m)
		}
		proto.Reset(out)
		return s.reader.Next(out)
	case s.mutated != nil:
		out, ok := m.(*bigtablepb.MutateRowsResponse)
		if !ok {
			return wrongMessage(s.method, m)
		}
		proto.Reset(out)
		out.Entries, out.RateLimitInfo = s.mutated.Entries, s.mutated.RateLimitInfo
		s.mutated, s.err = nil, io.EOF
		return nil
	case len(s.samples) > 0:
		out, ok := m.(proto.Message)
		if !ok {
			return wrongMessage(s.method, m)
		}
		next := s.samples[0]
		s.samples = s.samples[1:]
		return move(out, next)
	}
	if s.samples != nil {
		return io.EOF
	}
	return status.Errorf(codes.Unimplemented, "method %s is not offered", s.method)
}
