package tsdb_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestReadsCountWhileTheySend: each call that reads counts as a running read while its requests run, and no longer than
// the call. Otherwise a tenant has more reads at once than its limit, or none any more.
func TestReadsCountWhileTheySend(t *testing.T) {
	s := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
	longBubble(t, func(t *testing.T) { // in which the store reads nothing in the background
		l := limiter(t)
		var requests, beside atomic.Int32
		watch := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if path.Base(method) == string(tsdbtest.ReadRows) {
				requests.Add(1)
				if done, err := gate.Of(l).Read(acme); err == nil {
					beside.Add(1)
					done()
				}
			}
			return streamer(ctx, desc, cc, method, opts...)
		})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l, Cache: cached.Cache}, DialOptions: []grpc.DialOption{watch}}, s)
		repo := s.For(store, acme)
		var points []tsdb.Point[string]
		for _, parts := range hostileEntities {
			points = append(points, tsdb.Point[string]{Entity: tsdb.NewEntity(parts...), Time: start, Value: label("acme", "r", parts)})
		}
		must[[]tsdb.Outcome](t)(repo.PutMany(t.Context(), points))
		restrict(t, l, limit.Limits{ConcurrentReads: 1})
		for name, held := range limitsOf {
			if !slices.Contains(held, limit.ConcurrentReads) {
				continue
			}
			requests.Store(0)
			beside.Store(0)
			if _, err := operations[name](t.Context(), repo, points[0].Entity, start); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if requests.Load() == 0 || beside.Load() > 0 {
				t.Errorf("%s sends %d requests, and during %d of them another read may begin", name, requests.Load(), beside.Load())
			}
			done, err := gate.Of(l).Read(acme)
			if err != nil {
				t.Fatalf("%s has ended, and still counts: %v", name, err)
			}
			done()
		}
	})
}

// TestRefusedByTheHookDoesNotCount: a point that Admit refuses uses nothing of the tenant's limits.
func TestRefusedByTheHookDoesNotCount(t *testing.T) {
	longBubble(t, func(t *testing.T) { // in which rates do not refill
		s, l, over := readings(t, tsdb.SchemaOptions{}), limiter(t), errors.New("over the limit")
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Limits: l}}, s)
		restrict(t, l, limit.Limits{PointsPerSecond: 1})
		refusal := over
		w := writer(t, store, tsdb.WriterOptions{Admit: func(context.Context, tenant.ID, int) error { return refusal }})
		in := s.For(store, acme).Via(w)
		if err := in.Enqueue(t.Context(), roof, start, reading{}); !errors.Is(err, over) {
			t.Errorf("a refused point: %v", err)
		}
		refusal = nil
		if err := in.Enqueue(t.Context(), roof, start, reading{}); err != nil {
			t.Errorf("the first point that is admitted: %v", err)
		}
		if err := in.Enqueue(t.Context(), roof, start, reading{}); !errors.Is(err, limit.ErrExceeded) {
			t.Errorf("the second one: %v, want ErrExceeded", err)
		}
	})
}
