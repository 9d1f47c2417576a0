package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestWriterWaitsAsAsked: the service refuses each request of a writer and says when to send it again. Whatever the
// code and the kind of write, the writer sends nothing before, and waits a minute at most. Flush and Close end with
// their own contexts.
func TestWriterWaitsAsAsked(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded} {
		for _, first := range []bool{false, true} { // bulk requests, or one for each row
			for _, tt := range []struct {
				asked       *durationpb.Duration
				quiet, most time.Duration
			}{
				{durationpb.New(30 * time.Second), 30 * time.Second, 35 * time.Second},
				{durationpb.New(10 * 365 * 24 * time.Hour), time.Minute, 65 * time.Second},
				{&durationpb.Duration{Seconds: math.MaxInt64}, time.Minute, 65 * time.Second},
				{durationpb.New(-time.Hour), 0, 3 * time.Second},
				{durationpb.New(0), 0, 3 * time.Second},
				{nil, 0, 3 * time.Second},
			} {
				t.Run(fmt.Sprintf("%v/first=%v/%v", code, first, tt.asked.AsDuration()), func(t *testing.T) {
					longBubble(t, func(t *testing.T) {
						later, err := grpcstatus.New(code, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: tt.asked})
						if err != nil {
							t.Fatal(err)
						}
						var armed atomic.Bool // the next request is refused
						var at time.Time      // when it was refused
						var again time.Duration
						refuse := func() error {
							switch {
							case armed.CompareAndSwap(true, false):
								at = time.Now()
								return later.Err()
							case again == 0 && !at.IsZero():
								again = time.Since(at)
							}
							return nil
						}
						opts := []grpc.DialOption{
							grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
								if err := refuse(); err != nil {
									return err
								}
								return invoker(ctx, method, req, reply, cc, opts...)
							}),
							grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
								if strings.HasSuffix(method, "/MutateRows") {
									if err := refuse(); err != nil {
										return nil, err
									}
								}
								return streamer(ctx, desc, cc, method, opts...)
							}),
						}
						s := tsdb.MustDefine("levels", tsdb.Key("site", "device"), codec.Int64(), tsdb.SchemaOptions{FirstWins: first}) // lists no fields
						store, _ := tsdbtest.Open(t, tsdbtest.Options{DialOptions: opts}, s)
						w := writer(t, store, tsdb.WriterOptions{})
						armed.Store(true)
						if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, start, 1); err != nil {
							t.Fatal(err)
						}
						if tt.quiet > 0 {
							ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
							begin := time.Now()
							if err := w.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 6*time.Second {
								t.Errorf("Flush with 5 s: %v after %v", err, time.Since(begin))
							}
							cancel()
						}
						if err := w.Flush(t.Context()); err != nil {
							t.Fatal(err)
						}
						if again < tt.quiet || again > tt.most {
							t.Errorf("got the next request after %v, want %v to %v", again, tt.quiet, tt.most)
						}
						if st := w.Stats(); st.Stored != 1 {
							t.Errorf("got %+v, want the point stored", st)
						}
					})
				})
			}
		}
	}
}
