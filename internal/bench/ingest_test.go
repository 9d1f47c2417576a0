package bench

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// bulkOf is how many rows a simple loop puts into one ApplyBulk.
const bulkOf = 1000

// row returns a point as a program writes it by hand.
func row(t time.Time) (string, *bigtable.Mutation, error) {
	payload, err := json.Marshal(reading{21.5, 40})
	if err != nil {
		return "", nil, err
	}
	m := bigtable.NewMutation()
	m.Set(family, qualifier, bigtable.Time(t.Truncate(time.Millisecond)), payload)
	return rowKey(t), m, nil
}

// applyEach, applyBulk, throughWriter and throughJournal write b.N points, a microsecond apart, and report points per
// second.
func applyEach(b *testing.B, tbl *bigtable.Table) {
	ctx, base := context.Background(), time.Now()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		key, m, err := row(base.Add(time.Duration(n) * time.Microsecond))
		if err == nil {
			err = tbl.Apply(ctx, key, m)
		}
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	pointsPerSecond(b, n)
}

func applyBulk(b *testing.B, tbl *bigtable.Table) {
	ctx, base := context.Background(), time.Now()
	b.ReportAllocs()
	n := 0
	keys, muts := make([]string, 0, bulkOf), make([]*bigtable.Mutation, 0, bulkOf)
	flush := func() {
		if errs, err := tbl.ApplyBulk(ctx, keys, muts); err != nil || errs != nil {
			b.Fatal(err, errs)
		}
		keys, muts = keys[:0], muts[:0]
	}
	for b.Loop() {
		key, m, err := row(base.Add(time.Duration(n) * time.Microsecond))
		if err != nil {
			b.Fatal(err)
		}
		if keys, muts = append(keys, key), append(muts, m); len(keys) == bulkOf {
			flush()
		}
		n++
	}
	b.StartTimer() // what is still on its way counts
	if len(keys) > 0 {
		flush()
	}
	b.StopTimer()
	pointsPerSecond(b, n)
}

func throughWriter(b *testing.B, repo *tsdb.Repository[reading], store *tsdb.Store) {
	ctx, base := context.Background(), time.Now()
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	in := repo.Via(w)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := in.Enqueue(ctx, roof, base.Add(time.Duration(n)*time.Microsecond), reading{21.5, 40}); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.StartTimer() // what is still on its way counts
	if err := w.Close(ctx); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	pointsPerSecond(b, n)
}

// throughJournal writes as a consumer of a queue does that acknowledges a message when its point is on disk.
func throughJournal(b *testing.B, repo *tsdb.Repository[reading], store *tsdb.Store) {
	ctx, base := context.Background(), time.Now()
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: b.TempDir()}})
	if err != nil {
		b.Fatal(err)
	}
	in := repo.Via(w)
	acked := 0
	ack := func(o tsdb.Outcome) {
		if o.State == tsdb.Journaled {
			acked++
		}
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := in.EnqueueFunc(ctx, roof, base.Add(time.Duration(n)*time.Microsecond), reading{21.5, 40}, ack); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.StartTimer() // count the delivery of the rest
	if err := w.Close(ctx); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if acked != n {
		b.Fatalf("got %d of %d points acknowledged", acked, n)
	}
	pointsPerSecond(b, n)
}

// pointsPerSecond reports the rate at which n points were written.
func pointsPerSecond(b *testing.B, n int) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "points/s")
}

func BenchmarkIngest(b *testing.B) {
	each := func(name string, run func(b *testing.B, repo *tsdb.Repository[reading], tbl *bigtable.Table, store *tsdb.Store)) {
		b.Run(name, func(b *testing.B) {
			repo, tbl, store := setupIngest(b, engine.Options{Dir: b.TempDir()})
			run(b, repo, tbl, store)
		})
	}
	each("apply", func(b *testing.B, _ *tsdb.Repository[reading], tbl *bigtable.Table, _ *tsdb.Store) { applyEach(b, tbl) })
	each("applybulk", func(b *testing.B, _ *tsdb.Repository[reading], tbl *bigtable.Table, _ *tsdb.Store) { applyBulk(b, tbl) })
	each("writer", func(b *testing.B, repo *tsdb.Repository[reading], _ *bigtable.Table, store *tsdb.Store) {
		throughWriter(b, repo, store)
	})
	each("journal", func(b *testing.B, repo *tsdb.Repository[reading], _ *bigtable.Table, store *tsdb.Store) {
		throughJournal(b, repo, store)
	})
}

// BenchmarkIngestRTT measures ingestion with a network delay on each call.
func BenchmarkIngestRTT(b *testing.B) {
	store, conn := tsdbtest.Open(b, tsdbtest.Options{}, readings)
	client, _ := tsdbtest.Clients(b, conn)
	tbl := client.Open(tsdbtest.Table)
	conn.Inject(tsdbtest.Delay(5 * time.Millisecond))
	repo := readings.For(store, acme)
	b.Run("apply", func(b *testing.B) { applyEach(b, tbl) })
	b.Run("applybulk", func(b *testing.B) { applyBulk(b, tbl) })
	b.Run("writer", func(b *testing.B) { throughWriter(b, repo, store) })
}
