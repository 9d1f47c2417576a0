package tsdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestAnswersForNoEntry: an entry in a response with an unknown index, or without a status, is ignored.
func TestAnswersForNoEntry(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		for name, spoil := range map[string]func(e *btpb.MutateRowsResponse_Entry){
			"index -1": func(e *btpb.MutateRowsResponse_Entry) { e.Index = -1 }, "index 99": func(e *btpb.MutateRowsResponse_Entry) { e.Index = 99 },
			"no status": func(e *btpb.MutateRowsResponse_Entry) { e.Status = nil },
		} {
			store := through(t, tsdb.Timeouts{Write: faultTimeout()}, []tsdb.Dataset{s}, onStream("MutateRows", func(m any) error {
				spoil(m.(*btpb.MutateRowsResponse).Entries[0])
				return nil
			}))
			out, err := s.For(store, acme).PutMany(t.Context(), points(2))
			if !errors.Is(err, tsdb.ErrUnknown) || out[0].State != tsdb.Unknown || out[1].State != tsdb.Stored {
				t.Errorf("%s: %v, %v", name, out, err)
			}
		}
	})
}

// TestTheLongestWaitCounts: if entries of one request ask for different waits, the longest is used.
func TestTheLongestWaitCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		first := true
		store := through(t, tsdb.Timeouts{}, []tsdb.Dataset{s}, onStream("MutateRows", func(m any) error {
			if !first {
				return nil
			}
			first = false
			for i, e := range m.(*btpb.MutateRowsResponse).Entries {
				st, _ := grpcstatus.New(codes.Unavailable, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(i+1) * time.Second)})
				e.Status = st.Proto()
			}
			return nil
		}))
		begin := time.Now()
		if _, err := s.For(store, acme).PutMany(t.Context(), points(2)); err != nil || time.Since(begin) < 2*time.Second {
			t.Errorf("error %v after %v", err, time.Since(begin))
		}
	})
}

// late is a context whose deadline passes while Done stays open.
type late struct {
	context.Context
	over func() bool
}

func (l late) Err() error {
	if l.over() {
		return context.Canceled
	}
	return nil
}
func (l late) Done() <-chan struct{} { return nil }
func (l late) Deadline() (time.Time, bool) {
	return time.Now().Add(time.Second), true
}

// TestTriedIsNotUnsent: a write that was attempted before the time ended is unknown, not rejected.
func TestTriedIsNotUnsent(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.MutateRows))
		begin := time.Now()
		l := late{t.Context(), func() bool { return time.Since(begin) > time.Millisecond }}
		out, err := s.For(store, acme).PutMany(l, points(1))
		if !errors.Is(err, tsdb.ErrUnknown) || out[0].Attempts != 1 {
			t.Errorf("outcome %v, error %v; want unknown after one attempt", out, err)
		}
	})
}
