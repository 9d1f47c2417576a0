package tsdb_test

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestJournalBringsPointsToHeads: the next writer delivers the points of a journal to both rows. It knows the dataset
// only from the journal.
func TestJournalBringsPointsToHeads(t *testing.T) {
	for _, only := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			s := headSchema(t, only, tsdb.SchemaOptions{})
			store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: faultTimeout()}}}, s)
			opts := journaled(t)
			w := writer(t, store, opts)
			end := conn.Outage()
			for i := range 5 {
				if err := s.For(store, acme).Via(w).Enqueue(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{float64(i)}); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_ = w.Close(ctx)
			end()
			w = writer(t, store, opts)
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			there := rows(t, table)
			for i := 2; i < 5; i++ {
				at := start.Add(time.Duration(i) * time.Second)
				if !inHead(there[headKey(roof)], at) || there[milliKey(roof, at)] == nil == !only {
					t.Errorf("only %v: the point of %v is stored in the rows %v", only, at, there)
				}
			}
			wholeHead(t, "after the journal", s.For(store, acme), roof, kept)
		})
	}
}
