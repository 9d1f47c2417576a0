package tsdb_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestOnChangeAtOnce: many callers offer points of the same entities, others delete them, and one reads the statistics.
// Each point has one outcome, and after Close the newest one of each entity is stored.
func TestOnChangeAtOnce(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	c := newChanging(t, store, s, tsdb.WriterOptions{})
	const callers, each, entities = 8, 300, 4
	var clock, ended atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range each {
				e, at := tsdb.NewEntity("berlin", fmt.Sprint(n%entities)), start.Add(time.Duration(clock.Add(1))*time.Second)
				if err := c.sink.EnqueueFunc(t.Context(), e, at, reading{float64(n / 50)}, func(tsdb.Outcome) { ended.Add(1) }); err != nil {
					t.Error(err)
				}
				if i == 0 && n%100 == 50 {
					_, err := c.repo.DeleteRange(t.Context(), e, tsdb.Until(start.Add(time.Second)))
					if err != nil {
						t.Error(err)
					}
				}
				_ = c.w.Stats()
			}
		})
	}
	all.Wait()
	last := start.Add(time.Duration(clock.Add(1)) * time.Second)
	for n := range entities {
		if err := c.sink.Enqueue(t.Context(), tsdb.NewEntity("berlin", fmt.Sprint(n)), last, reading{each / 50}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ended.Load() != callers*each {
		t.Errorf("%d outcomes of %d points", ended.Load(), callers*each)
	}
	for n := range entities {
		p, err := c.repo.Latest(t.Context(), tsdb.NewEntity("berlin", fmt.Sprint(n)))
		if err != nil || !p.Time.Equal(last) {
			t.Errorf("the newest of entity %d is of %v (%v), want %v", n, p.Time, err, last)
		}
	}
}
