package rollup_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// erasing runs a function once: after points have been read, or after a bucket has been replaced.
type erasing struct {
	replaced bool // run it after a bucket was replaced
	run      func()
}

func (e *erasing) once() {
	if f := e.run; f != nil {
		e.run = nil
		f()
	}
}

func (e *erasing) dial() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := streamer(ctx, desc, cc, method, opts...)
			return &endOfPoints{ClientStream: s, erasing: e}, err
		}),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := invoker(ctx, method, req, reply, cc, opts...)
			if e.replaced && strings.HasSuffix(method, "/CheckAndMutateRow") {
				e.once()
			}
			return err
		}),
	}
}

// endOfPoints is a stream. If it has returned a point, the function runs at its end.
type endOfPoints struct {
	grpc.ClientStream
	*erasing
	points bool
}

func (s *endOfPoints) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if rows, ok := m.(*btpb.ReadRowsResponse); ok && err == nil {
		for _, c := range rows.Chunks {
			s.points = s.points || strings.HasPrefix(string(c.RowKey), "acme#r#")
		}
	}
	if errors.Is(err, io.EOF) && s.points && !s.replaced {
		s.once()
	}
	return err
}

// TestErasedWhileItIsComputed: a tenant or an entity is erased after a worker has read its points, or after it has
// replaced a bucket. The worker must write neither the bucket nor the marks of coarser rollups.
func TestErasedWhileItIsComputed(t *testing.T) {
	quick := tenants.EraseOptions{Settle: time.Millisecond}
	for _, replaced := range []bool{false, true} {
		for _, whole := range []bool{true, false} {
			addBubble(t, func(t *testing.T) {
				e := &erasing{replaced: replaced}
				c := newChain(t, e.dial()...)
				c.put(t, start, 1)
				c.Set(start.Add(3 * time.Hour))
				e.run = func() {
					var err error
					if whole {
						_, err = tenants.Erase(context.Background(), c.store, acme, quick)
					} else {
						_, err = tenants.EraseEntity(context.Background(), c.store, acme, "", map[string]string{"site": "berlin", "device": "roof-7"}, quick)
					}
					if err != nil {
						t.Error(err)
					}
				}
				if _, err := c.worker.Pass(t.Context()); err != nil {
					t.Errorf("pass: %v", err)
				}
				if e.run != nil {
					t.Fatal("nothing was erased, so the test proves nothing")
				}
				client, _ := tsdbtest.Clients(t, c.conn)
				var left []string
				if err := client.Open(tsdbtest.Table).ReadRows(t.Context(), bigtable.PrefixRange("acme#"), func(row bigtable.Row) bool {
					left = append(left, row.Key())
					return true
				}); err != nil || len(left) > 0 {
					t.Errorf("left of the tenant (whole %v, replaced %v): %v, %v", whole, replaced, left, err)
				}
			})
		}
	}
}

// TestErasureOfAnEntityThatEndsHalfWay: an erasure of an entity ends at each of its requests in turn, or cannot delete
// some of its rows. All rollups then agree with the points that are left.
func TestErasureOfAnEntityThatEndsHalfWay(t *testing.T) {
	whole := tsdb.Between(start.Add(-48*time.Hour), start.Add(96*time.Hour))
	halfWay := func(t *testing.T, stop func(ctx context.Context, c *chain) context.Context) (requests int) {
		addBubble(t, func(t *testing.T) {
			c := newChain(t)
			for i := range 12 {
				c.put(t, start.Add(time.Duration(i)*2*time.Hour+time.Duration(i)*time.Minute), float64(i+1))
			}
			c.Set(start.Add(72 * time.Hour))
			c.settle(t)
			ctx := stop(t.Context(), c)
			c.conn.Reset()
			_, err := tenants.EraseEntity(ctx, c.store, acme, "", map[string]string{"site": "berlin", "device": "roof-7"}, tenants.EraseOptions{Settle: time.Millisecond})
			for _, n := range c.conn.Counts().Calls {
				requests += n
			}
			c.conn.Clear()
			n, sum := int64(0), 0.0
			for p, perr := range c.repo.Range(t.Context(), roof, whole) {
				if perr != nil {
					t.Fatal(perr)
				}
				n, sum = n+1, sum+p.Value.TempC
			}
			for _, r := range c.all() {
				if b := total(t, r, c.repo, whole); b.Points != n || n > 0 && b.Values[0].Sum != sum {
					t.Errorf("ended with %v: rollup %s has %d points with the sum %v, and %d points with the sum %v are left", err, r.Name(), b.Points, b.Values[0].Sum, n, sum)
				}
			}
		})
		return requests
	}
	all := halfWay(t, func(ctx context.Context, _ *chain) context.Context { return ctx })
	for cut := 0; cut < all; cut += testkit.Stride(7) { // the plain run has all cuts
		halfWay(t, func(ctx context.Context, c *chain) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			calls := 0
			c.conn.Inject(tsdbtest.DelayBy(func() time.Duration {
				if calls++; calls == cut+1 {
					cancel()
				}
				return 0
			}))
			return ctx
		})
	}
	for _, kind := range []string{"acme#r#", "acme#r!rollup.min", "acme#r!rollup.hour", "acme#r!rollup.day", "acme#r!mark."} {
		halfWay(t, func(ctx context.Context, c *chain) context.Context {
			n := 0
			c.conn.Inject(tsdbtest.FailEntries(codes.FailedPrecondition, func(key string) bool {
				n++
				return strings.HasPrefix(key, kind) && n%2 == 0
			}))
			return ctx
		})
	}
}
