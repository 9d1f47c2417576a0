package conform

import (
	"context"
	"path"
	"sync"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// meter is on the connection. It counts requests, notes what the service says about load, and loses responses for cases
// that ask for it: the request has then reached the service.
type meter struct {
	mu       sync.Mutex
	requests map[string]int
	bytes    int64
	lose     map[string]int // how many responses of a method to lose
	retry    int            // errors with RetryInfo
	rates    int            // responses with RateLimitInfo
}

func newMeter() *meter { return &meter{requests: map[string]int{}, lose: map[string]int{}} }

func (m *meter) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(m.unary), grpc.WithChainStreamInterceptor(m.stream)}
}

// loseNext makes the next response of a method of the data API get lost.
func (m *meter) loseNext(method string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lose[method]++
}

func (m *meter) sent(method string, req any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[path.Base(method)]++
	if msg, ok := req.(proto.Message); ok {
		m.bytes += int64(proto.Size(msg))
	}
}

// lost reports whether a response is to be lost.
func (m *meter) lost(method string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := path.Base(method)
	if m.lose[name] == 0 {
		return false
	}
	m.lose[name]--
	return true
}

func (m *meter) answered(err error, reply any) {
	for _, d := range status.Convert(err).Details() {
		if _, ok := d.(*errdetails.RetryInfo); ok {
			m.mu.Lock()
			m.retry++
			m.mu.Unlock()
		}
	}
	if res, ok := reply.(*bigtablepb.MutateRowsResponse); ok && res.GetRateLimitInfo() != nil {
		m.mu.Lock()
		m.rates++
		m.mu.Unlock()
	}
}

var errLost = status.Error(codes.Unavailable, "the response was lost, as the case asks for")

func (m *meter) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	m.sent(method, req)
	err := invoker(ctx, method, req, reply, cc, opts...)
	m.answered(err, nil)
	if err == nil && m.lost(method) {
		proto.Reset(reply.(proto.Message))
		return errLost
	}
	return err
}

func (m *meter) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &meteredStream{ClientStream: s, meter: m, method: method}, nil
}

type meteredStream struct {
	grpc.ClientStream
	*meter
	method string
}

func (s *meteredStream) SendMsg(msg any) error {
	s.sent(s.method, msg)
	return s.ClientStream.SendMsg(msg)
}

func (s *meteredStream) RecvMsg(msg any) error {
	err := s.ClientStream.RecvMsg(msg)
	s.answered(err, msg)
	if err == nil && s.lost(s.method) {
		return errLost
	}
	return err
}
