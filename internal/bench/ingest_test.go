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

// bulkOf is how many rows a tight loop by hand puts into one ApplyBulk.
const bulkOf = 1000

// row is a point as a hand makes it.
func row(t time.Time) (string, *bigtable.Mutation, error) {
	payload, err := json.Marshal(reading{21.5, 40})
	if err != nil {
		return "", nil, err
	}
	m := bigtable.NewMutation()
	m.Set(family, qualifier, bigtable.Time(t.Truncate(time.Millisecond)), payload)
	return rowKey(t), m, nil
}

// ingestBy writes b.N points by each way of writing them, a microsecond apart, and reports points/s.
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
	if len(keys) > 0 {
		flush()
	}
	pointsPerSecond(b, n)
}

func throughWriter(b *testing.B, repo *tsdb.Repository[reading], store *tsdb.Store, opts tsdb.WriterOptions) {
	ctx, base := context.Background(), time.Now()
	w, err := store.NewWriter(opts)
	if err != nil {
		b.Fatal(err)
	}
	in := repo.Via(w)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := in.Put(ctx, roof, base.Add(time.Duration(n)*time.Microsecond), reading{21.5, 40}); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := w.Close(ctx); err != nil {
		b.Fatal(err)
	}
	pointsPerSecond(b, n)
}

// pointsPerSecond reports the rate at which n points were written, by the time that has passed up to now: what was still
// on its way when the loop ended counts.
func pointsPerSecond(b *testing.B, n int) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "points/s")
}

func BenchmarkIngest(b *testing.B) {
	repo, tbl, store := setupIngest(b, engine.Options{Dir: b.TempDir()})
	b.Run("apply", func(b *testing.B) { applyEach(b, tbl) })
	b.Run("applybulk", func(b *testing.B) { applyBulk(b, tbl) })
	b.Run("writer", func(b *testing.B) { throughWriter(b, repo, store, tsdb.WriterOptions{}) })
}

// BenchmarkIngestRTT puts the time of a network on each call.
func BenchmarkIngestRTT(b *testing.B) {
	store, conn := tsdbtest.Open(b, tsdbtest.Options{}, readings)
	client, _ := tsdbtest.Clients(b, conn)
	tbl := client.Open(tsdbtest.Table)
	conn.Inject(tsdbtest.Delay(5 * time.Millisecond))
	repo := readings.For(store, acme)
	b.Run("apply", func(b *testing.B) { applyEach(b, tbl) })
	b.Run("applybulk", func(b *testing.B) { applyBulk(b, tbl) })
	b.Run("writer", func(b *testing.B) { throughWriter(b, repo, store, tsdb.WriterOptions{}) })
}
