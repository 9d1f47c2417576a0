package lab

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
)

// tally is what one operation did, counted on the connection.
type tally struct{ requests, seen, returned atomic.Int64 }

type tallyKey struct{}

// counted returns a context whose requests are counted.
func counted(ctx context.Context) (context.Context, *tally) {
	t := new(tally)
	return context.WithValue(ctx, tallyKey{}, t), t
}

// meter counts the requests of a connection. Each read asks the service how many rows it looked at.
type meter struct {
	writes      durations // of requests that write
	requests    atomic.Int64
	rowsWritten atomic.Int64
	bytes       atomic.Int64 // of keys, columns and values that were written
}

func (m *meter) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(m.unary), grpc.WithChainStreamInterceptor(m.stream)}
}

func tallyOf(ctx context.Context) *tally {
	if t, ok := ctx.Value(tallyKey{}).(*tally); ok {
		return t
	}
	return new(tally)
}

func (m *meter) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	var key []byte
	var muts []*btpb.Mutation
	switch req := req.(type) {
	case *btpb.MutateRowRequest:
		key, muts = req.RowKey, req.Mutations
	case *btpb.CheckAndMutateRowRequest:
		key, muts = req.RowKey, slices.Concat(req.TrueMutations, req.FalseMutations)
	default:
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	tallyOf(ctx).requests.Add(1)
	began := time.Now()
	err := invoker(ctx, method, req, reply, cc, opts...)
	if err != nil {
		m.wrote(0, 0, 0, err)
	} else {
		m.wrote(1, len(key)+sizeOf(muts), time.Since(began), nil)
	}
	return err
}

// wrote counts a request that writes, and the rows that it has stored.
func (m *meter) wrote(rows, bytes int, took time.Duration, err error) {
	m.requests.Add(1)
	m.rowsWritten.Add(int64(rows))
	m.bytes.Add(int64(bytes))
	if err == nil {
		m.writes.add(took)
	}
}

func (m *meter) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil || !strings.HasSuffix(method, "Rows") {
		return s, err
	}
	return &metered{ClientStream: s, m: m, tally: tallyOf(ctx), began: time.Now()}, nil
}

// metered is a stream of rows that are read or written.
type metered struct {
	grpc.ClientStream
	m           *meter
	tally       *tally
	began       time.Time
	writes      bool
	sizes       []int // of the rows of a request that writes
	rows, bytes int   // of those that are stored
}

func (s *metered) SendMsg(msg any) error {
	s.tally.requests.Add(1)
	switch req := msg.(type) {
	case *btpb.ReadRowsRequest:
		req.RequestStatsView = btpb.ReadRowsRequest_REQUEST_STATS_FULL
	case *btpb.MutateRowsRequest:
		s.writes = true
		for _, e := range req.Entries {
			s.sizes = append(s.sizes, len(e.RowKey)+sizeOf(e.Mutations))
		}
	}
	return s.ClientStream.SendMsg(msg)
}

func (s *metered) RecvMsg(msg any) error {
	err := s.ClientStream.RecvMsg(msg)
	if err != nil {
		if s.writes {
			failed := err
			if err == io.EOF {
				failed = nil
			}
			s.m.wrote(s.rows, s.bytes, time.Since(s.began), failed)
			s.writes = false
		}
		return err
	}
	switch res := msg.(type) {
	case *btpb.MutateRowsResponse:
		for _, e := range res.Entries {
			if i := e.GetIndex(); e.GetStatus().GetCode() == 0 && i >= 0 && i < int64(len(s.sizes)) {
				s.rows++
				s.bytes += s.sizes[i]
			}
		}
	case *btpb.ReadRowsResponse:
		if stats := res.GetRequestStats().GetFullReadStatsView().GetReadIterationStats(); stats != nil {
			s.tally.seen.Add(stats.RowsSeenCount)
			s.tally.returned.Add(stats.RowsReturnedCount)
		}
		res.RequestStats = nil // the client did not ask
	}
	return nil
}

// sizeOf returns the bytes of columns and values.
func sizeOf(mutations []*btpb.Mutation) (n int) {
	for _, m := range mutations {
		if c := m.GetSetCell(); c != nil {
			n += len(c.ColumnQualifier) + len(c.Value)
		}
	}
	return n
}

// mostDurations bounds what durations keeps: beyond it, each has the same chance to be kept.
const mostDurations = 20_000

// durations is a sample of durations. It is safe for concurrent use.
type durations struct {
	mu   sync.Mutex
	n    int
	list []time.Duration
}

func (d *durations) add(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	if len(d.list) < mostDurations {
		d.list = append(d.list, took)
	} else if i := rand.IntN(d.n); i < mostDurations {
		d.list[i] = took
	}
}

// percentiles returns the median and the 99th percentile.
func (d *durations) percentiles() (p50, p99 time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) == 0 {
		return 0, 0
	}
	slices.Sort(d.list)
	return d.list[len(d.list)/2], d.list[min(len(d.list)*99/100, len(d.list)-1)]
}

func (d *durations) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n, d.list = 0, nil
}
