package tsdb_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestWidthBoundsWhatIsReadUnderAPrefix: the limit also covers the parts of a cut part and the request that finds where
// to cut, and these make progress.
func TestWidthBoundsWhatIsReadUnderAPrefix(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		var now, most atomic.Int32
		count := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if !strings.HasSuffix(method, "/ReadRows") { // the fields of the points are listed meanwhile
				return streamer(ctx, desc, cc, method, opts...)
			}
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return streamer(ctx, desc, cc, method, opts...)
		})
		for name, tt := range map[string]struct {
			salts int
			named func(i int) string
		}{"in one clump": {0, clusteredName}, "numbers": {0, number}, "salted": {16, number}} {
			for _, width := range []int32{1, 2, 3} {
				s := readings(t, tsdb.SchemaOptions{Salts: tt.salts})
				store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{count}}, s)
				repo := s.For(store, acme)
				var points []tsdb.Point[reading]
				var want []tsdb.Entity
				for i := range 300 {
					want = append(want, tsdb.NewEntity("berlin", tt.named(i)))
					for k := range 40 {
						points = append(points, tsdb.Point[reading]{Entity: want[i], Time: start.Add(time.Duration(k) * time.Second)})
					}
				}
				for batch := range slices.Chunk(points, 10_000) {
					putAll(t, repo, batch)
				}
				slices.SortFunc(want, tsdb.Entity.Compare)
				conn.Inject(tsdbtest.Delay(5 * time.Millisecond).On(tsdbtest.ReadRows))
				most.Store(0)
				seen, err := gather(t.Context(), repo, tsdb.Concurrency(width))
				if err != nil || !slices.Equal(seen, want) {
					t.Errorf("%s: got %d entities, %v", name, len(seen), err)
				}
				if got := most.Load(); got != width {
					t.Errorf("%s: %d requests at once, want %d", name, got, width)
				}
			}
		}
	})
}
