package cost

import (
	"context"
	"fmt"
	"strings"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// tally is what a meter counted.
type tally struct {
	Admin          int // calls of the table admin API
	Written        int // rows in write requests, also in conditional ones that wrote nothing
	Sent, Received int // bytes of messages, including those of the admin API
}

// meter counts what tsdbtest does not count on a connection. It counts the store's background reads separately.
type meter struct {
	mu            sync.Mutex
	calls, upkeep tally
	marks         map[string]bool // the versions of dirty marks that were written
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls, m.upkeep, m.marks = tally{}, tally{}, nil
}

func (m *meter) read() (calls, upkeep tally, marks int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls, m.upkeep, len(m.marks)
}

func (m *meter) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(m.unary), grpc.WithChainStreamInterceptor(m.stream)}
}

// warms reports whether the official client makes the call to warm a connection.
func warms(method string) bool { return strings.HasSuffix(method, "/PingAndWarm") }

func (m *meter) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if warms(method) {
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	m.sent(ctx, req)
	if strings.HasPrefix(method, "/google.bigtable.admin.") {
		m.add(ctx, tally{Admin: 1})
	}
	err := invoker(ctx, method, req, reply, cc, opts...)
	m.received(ctx, reply)
	return err
}

func (m *meter) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	return &metered{ClientStream: s, meter: m, ctx: ctx}, nil
}

func (m *meter) add(ctx context.Context, t tally) {
	m.mu.Lock()
	defer m.mu.Unlock()
	to := &m.calls
	if bt.Upkeep(ctx) {
		to = &m.upkeep
	}
	to.Admin += t.Admin
	to.Written += t.Written
	to.Sent += t.Sent
	to.Received += t.Received
}

func (m *meter) sent(ctx context.Context, msg any) {
	t := tally{Sent: proto.Size(msg.(proto.Message))}
	switch req := msg.(type) {
	case *btpb.MutateRowRequest, *btpb.CheckAndMutateRowRequest:
		t.Written = 1
	case *btpb.MutateRowsRequest:
		t.Written = len(req.Entries)
		m.mark(req)
	}
	m.add(ctx, t)
}

// mark records the versions of dirty marks in a request.
func (m *meter) mark(req *btpb.MutateRowsRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range req.Entries {
		for _, mut := range e.Mutations {
			if cell := mut.GetSetCell(); cell.GetFamilyName() == dataset.MarkFamily {
				if m.marks == nil {
					m.marks = map[string]bool{}
				}
				m.marks[fmt.Sprintf("%s %s %d", e.RowKey, cell.ColumnQualifier, cell.TimestampMicros)] = true
			}
		}
	}
}

// received counts a response, without the statistics that only tests request.
func (m *meter) received(ctx context.Context, msg any) {
	if res, ok := msg.(*btpb.ReadRowsResponse); ok && res.RequestStats != nil {
		stats := res.RequestStats
		res.RequestStats = nil
		defer func() { res.RequestStats = stats }()
	}
	m.add(ctx, tally{Received: proto.Size(msg.(proto.Message))})
}

// metered is a stream whose messages are counted.
type metered struct {
	grpc.ClientStream
	meter *meter
	ctx   context.Context
}

func (s *metered) SendMsg(m any) error {
	s.meter.sent(s.ctx, m)
	return s.ClientStream.SendMsg(m)
}

func (s *metered) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		s.meter.received(s.ctx, m)
	}
	return err
}
