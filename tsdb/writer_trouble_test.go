package tsdb_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestWaitForARowIsItsTenants: the service asks to leave one tenant's rows alone for a minute, for an entry or for a
// request of one row. Points of another tenant are still stored, with and without a journal.
func TestWaitForARowIsItsTenants(t *testing.T) {
	later, err := grpcstatus.New(codes.ResourceExhausted, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	entries := onStream("MutateRows", func(m any) error {
		for _, e := range m.(*btpb.MutateRowsResponse).Entries {
			if e.Status.GetCode() == int32(codes.ResourceExhausted) {
				e.Status = later.Proto()
			}
		}
		return nil
	})
	rows := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if r, ok := req.(*btpb.CheckAndMutateRowRequest); ok && strings.HasPrefix(string(r.RowKey), "bad#") {
			return later.Err()
		}
		return invoker(ctx, method, req, reply, cc, opts...)
	})
	for _, first := range []bool{false, true} {
		for _, journal := range []bool{false, true} {
			t.Run(fmt.Sprintf("first=%v/journal=%v", first, journal), func(t *testing.T) {
				longBubble(t, func(t *testing.T) {
					s := readings(t, tsdb.SchemaOptions{FirstWins: first})
					store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{entries, rows}}, s)
					conn.Inject(tsdbtest.FailEntries(codes.ResourceExhausted, func(key string) bool { return strings.HasPrefix(key, "bad#") }))
					var opts tsdb.WriterOptions
					if journal {
						opts = journaled(t)
					}
					w := must[*tsdb.Writer](t)(store.NewWriter(opts))
					for i := range 100 {
						for _, id := range []string{"bad", "quiet"} {
							e := tsdb.NewEntity("berlin", fmt.Sprint("d", i))
							if err := s.For(store, tenant.MustParse(id)).Via(w).Enqueue(t.Context(), e, start, reading{1}); err != nil {
								t.Fatal(err)
							}
						}
						time.Sleep(300 * time.Millisecond)
					}
					time.Sleep(time.Second)
					if st := w.Stats(); st.Stored != 100 || st.Slots < 4 || st.Down != nil {
						t.Errorf("after 31 s %d of the other tenant's 100 points are stored; %d slots, down: %v", st.Stored, st.Slots, st.Down)
					}
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					_ = w.Close(ctx)
				})
			})
		}
	}
}
