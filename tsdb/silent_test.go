package tsdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestSilentStreams: where the network goes silent in the middle of a stream, a read yields what has arrived and ends
// with its timeout, and the points whose results are missing are unknown.
func TestSilentStreams(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Scan: time.Minute}}}, s)
		repo := s.For(store, acme)
		var points []tsdb.Point[reading]
		for i := range 5 {
			points = append(points, tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i))})
		}
		for after := range 6 {
			conn.Inject(tsdbtest.Hang(after).On(tsdbtest.MutateRows))
			outcomes, err := repo.PutMany(t.Context(), points)
			conn.Clear()
			for i, o := range outcomes {
				if stored := i < after; (o.State == tsdb.Stored) != stored || !stored && o.State != tsdb.Unknown {
					t.Errorf("silent after %d results: point %d is %v", after, i, o.State)
				}
			}
			if after < 5 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("silent after %d results: %v, want a timeout", after, err)
			}

			conn.Inject(tsdbtest.Hang(after).On(tsdbtest.ReadRows))
			n, began := 0, time.Now()
			err = nil
			for _, e := range repo.Range(t.Context(), roof, tsdb.AllTime()) {
				if err = e; err == nil {
					n++
				}
			}
			conn.Clear()
			took := time.Since(began) // with a read of erasure marks, which may be due
			if n != min(after, 5) || !errors.Is(err, context.DeadlineExceeded) || took < time.Minute || took > 70*time.Second {
				t.Errorf("silent after %d rows: %d points, then %v after %v; want a timeout after a minute", after, n, err, took)
			}
		}
	})
}
