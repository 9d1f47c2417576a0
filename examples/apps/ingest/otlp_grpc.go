package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// maxMessageBytes bounds a gRPC message, packed and unpacked, as gRPC does by default. -max-body may lower it.
const maxMessageBytes = 4 << 20

// maxStreams bounds the requests of one connection at once.
const maxStreams = 64

// grpc returns the gRPC server of OTLP. It has one method, MetricsService.Export.
//
// The method is registered as a stream of one message, which looks the same to clients: so the token is checked, and
// memory is taken, before the message is read.
func (s *server) grpc() *grpc.Server {
	srv := grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.MaxRecvMsgSize(s.maxMessage()),
		grpc.MaxConcurrentStreams(maxStreams),
		// Fixed windows bound what a connection buffers before the handler reads.
		grpc.StaticStreamWindowSize(256<<10), grpc.StaticConnWindowSize(1<<20),
		grpc.MaxHeaderListSize(64<<10),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 10 * time.Minute}),
	)
	method := collectorpb.MetricsService_ServiceDesc
	srv.RegisterService(&grpc.ServiceDesc{
		ServiceName: method.ServiceName,
		Streams: []grpc.StreamDesc{{
			StreamName: "Export", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return s.exportGRPC(stream) },
		}},
	}, nil)
	return srv
}

// stopGRPC lets calls in progress finish until ctx ends.
func stopGRPC(ctx context.Context, srv *grpc.Server) {
	stop := context.AfterFunc(ctx, srv.Stop)
	defer stop()
	srv.GracefulStop()
}

func (s *server) maxMessage() int { return int(min(maxMessageBytes, s.limits.Body)) }

func (s *server) exportGRPC(stream grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	id, ok := s.auth.bearer(md.Get("authorization"))
	if !ok {
		return status.Error(codes.Unauthenticated, "the token is missing or not known")
	}
	most := int64(s.maxMessage())
	if !s.memory.Take(id, most) {
		return busy("too many bytes of requests at once").err()
	}
	defer s.memory.Return(id, most)
	var body []byte
	received := make(chan error, 1)
	go func() { received <- stream.RecvMsg(&body) }() // ends when this function has returned
	late := time.NewTimer(s.limits.Timeout)
	defer late.Stop()
	select {
	case err := <-received:
		if err != nil {
			return err
		}
	case <-late.C:
		return status.Errorf(codes.DeadlineExceeded, "the message took longer than %v", s.limits.Timeout)
	}
	response, fail := s.export(stream.Context(), id, body, false)
	if fail != nil {
		return fail.err()
	}
	return stream.SendMsg(response)
}

// code is the gRPC code of a failure. Clients retry UNAVAILABLE, and RESOURCE_EXHAUSTED if the error says when.
func (f *failure) code() codes.Code {
	switch f.status {
	case http.StatusBadRequest, http.StatusUnsupportedMediaType:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusServiceUnavailable:
		return codes.Unavailable
	}
	return codes.Internal
}

// err returns a failure as a gRPC status.
func (f *failure) err() error {
	st := status.New(f.code(), f.message)
	if f.retry > 0 {
		if detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(f.retry)}); err == nil {
			st = detailed
		}
	}
	return st.Err()
}

// rawCodec leaves the decoding of requests to the handler.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	body, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot decode into %T", v)
	}
	*body = data.Materialize()
	return nil
}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("cannot encode a %T", v)
	}
	body, err := proto.Marshal(m)
	return mem.BufferSlice{mem.SliceBuffer(body)}, err
}
