package heatmap

import (
	"context"
	"io"
	"time"

	"google.golang.org/grpc"
)

// DialOptions returns interceptors that record the requests of a connection. Use them as DialOptions of tsdb.Config and
// of package embedded. For a raw client pass each to option.WithGRPCDialOption, or dial the connection for
// option.WithGRPCConn with them, after those of tsdb.DialOptions if it has these. Of a nil or zero Recorder there are
// none.
func (r *Recorder) DialOptions() []grpc.DialOption {
	if r.off() {
		return nil
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(r.unary), grpc.WithChainStreamInterceptor(r.stream)}
}

// ServerOptions returns interceptors that record the requests that a server of the Bigtable API gets, from clients in
// any language. Use them as ServerOptions of package embedded. Of a nil or zero Recorder there are none.
func (r *Recorder) ServerOptions() []grpc.ServerOption {
	if r.off() {
		return nil
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(r.served), grpc.ChainStreamInterceptor(r.servedStream)}
}

func (r *Recorder) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := r.now()
	err := invoker(ctx, method, req, reply, cc, opts...)
	r.single(req, reply, began, err)
	return err
}

func (r *Recorder) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if !streams(method) {
		return streamer(ctx, desc, cc, method, opts...)
	}
	s := &clientStream{call: call{r: r, began: r.now()}}
	var err error
	if s.ClientStream, err = streamer(ctx, desc, cc, method, opts...); err != nil {
		return nil, err // before there is a request
	}
	return s, nil
}

func (r *Recorder) served(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	began := r.now()
	res, err := handler(ctx, req)
	r.single(req, res, began, err)
	return res, err
}

func (r *Recorder) servedStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if !streams(info.FullMethod) {
		return handler(srv, stream)
	}
	s := &serverStream{ServerStream: stream, call: call{r: r, began: r.now()}}
	err := handler(srv, s)
	s.call.end(err)
	return err
}

// clientStream records a stream at its client.
type clientStream struct {
	grpc.ClientStream
	call     call
	received time.Duration // when the last response came; 0 before the first
}

func (s *clientStream) SendMsg(m any) error {
	s.call.request(m)
	err := s.ClientStream.SendMsg(m)
	if err != nil && err != io.EOF { // after EOF, RecvMsg returns the cause
		s.call.end(err)
	}
	return err
}

func (s *clientStream) RecvMsg(m any) error {
	if s.received != 0 {
		s.call.idle += s.call.r.now() - s.received // the program was busy with the response before
	}
	err := s.ClientStream.RecvMsg(m)
	if err != nil {
		s.call.end(err)
		return err
	}
	s.call.response(m)
	s.received = s.call.r.now()
	return nil
}

// serverStream records a stream at its server.
type serverStream struct {
	grpc.ServerStream
	call call
}

func (s *serverStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.call.request(m)
	}
	return err
}

// SendMsg waits for a client that is slower than the server, which does not count.
func (s *serverStream) SendMsg(m any) error {
	s.call.response(m)
	from := s.call.r.now()
	err := s.ServerStream.SendMsg(m)
	s.call.idle += s.call.r.now() - from
	return err
}
