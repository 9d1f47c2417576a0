package rollup_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
)

// stall runs a function once, before the next conditional write on a connection is sent.
type stall struct{ run func() }

func (s *stall) dial() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if f := s.run; f != nil && method == "/google.bigtable.v2.Bigtable/CheckAndMutateRow" {
			s.run = nil
			f()
		}
		return invoker(ctx, method, req, reply, cc, opts...)
	})
}

// TestStalledBehindAComputationThatChangesNothing: a worker or a rebuild reads a late point and stalls. The point is
// deleted, and a second worker or rebuild finds that the stored bucket is correct. The first one must not write: no
// mark is left, so nothing would ever correct a bucket with the deleted point.
func TestStalledBehindAComputationThatChangesNothing(t *testing.T) {
	workerPass := func(t *testing.T, o *one) {
		w, err := rollup.NewWorker(o.store, rollup.WorkerOptions{Tenants: only(acme)}, o.schema)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := w.Pass(t.Context()); err != nil {
			t.Error(err)
		}
	}
	rebuild := func(t *testing.T, o *one) {
		if _, err := rollup.For(o.hour, o.repo).Rebuild(t.Context(), tsdb.AllTime(), rollup.RebuildOptions{}); err != nil {
			t.Error(err)
		}
	}
	for name, stalled := range map[string]func(*testing.T, *one){"worker": workerPass, "rebuild": rebuild} {
		for _, early := range []int{0, 1} { // points whose bucket is stored before
			t.Run(fmt.Sprint(name, " of a bucket of ", early), func(t *testing.T) {
				addBubble(t, func(t *testing.T) {
					var s stall
					o := newOne(t, rollup.Options{}, gc.Class{}, s.dial())
					var want []float64
					if early > 0 {
						want = []float64{1}
						o.put(t, start, 1)
					}
					o.Set(start.Add(2 * time.Hour))
					o.pass(t)
					o.want(t, "stored before", o.stored(t), want...)
					late := start.Add(time.Minute)
					o.put(t, late, 100)
					o.Add(time.Hour)
					s.run = func() {
						if err := o.repo.Delete(t.Context(), roof, late); err != nil {
							t.Error(err)
						}
						o.Add(time.Hour)
						workerPass(t, o)
					}
					stalled(t, o)
					o.want(t, "stored", o.stored(t), want...)
					o.want(t, "read", o.sums(t), want...)
				})
			})
		}
	}
}
