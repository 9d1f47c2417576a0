package bt

import (
	"context"
	"sync"
	"sync/atomic"
)

// ByRow calls do for each of n writes, at most width at a time. Writes of one row are made one after the other, in
// order. The timeout of scans bounds them all together.
func (t *Table) ByRow(ctx context.Context, n, width int, key func(int) string, do func(ctx context.Context, i int)) {
	ctx, cancel := within(ctx, t.timeouts.Scan)
	defer cancel()
	order := make(map[string][]int, n)
	var keys []string
	for i := range n {
		k := key(i)
		if order[k] == nil {
			keys = append(keys, k)
		}
		order[k] = append(order[k], i)
	}
	AtOnce(width, len(keys), func(k int) {
		for _, i := range order[keys[k]] {
			do(ctx, i)
		}
	})
}

// AtOnce calls do for each index below n, at most width at a time.
func AtOnce(width, n int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var workers sync.WaitGroup
	for range min(width, n) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
}
