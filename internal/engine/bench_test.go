package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
)

func benchRig(b *testing.B, o engine.Options) (*rig, *bigtable.Table) {
	if o.Dir == "" {
		o.Dir = b.TempDir()
	}
	r := open(b, o)
	return r, r.create(b)
}

func pointKey(entity, i int) string {
	return fmt.Sprintf("acme#readings#site#device-%05d#%019d", entity, math.MaxInt64-int64(i)*1e9)
}

func payload(i int) []byte {
	v := binary.BigEndian.AppendUint64(nil, uint64(i)*0x9E3779B97F4A7C15)
	return fmt.Appendf(nil, `{"temp_c":%d.5,"humidity":%d,"id":"%x"}`, i%40, i%100, v)
}

// BenchmarkPut measures single puts through the official client. Each put is answered after its sync.
func BenchmarkPut(b *testing.B) {
	b.Run("serial", func(b *testing.B) {
		_, tbl := benchRig(b, engine.Options{})
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			m := bigtable.NewMutation()
			m.Set("f", "json", bigtable.Timestamp(i*1000), payload(i))
			if err := tbl.Apply(context.Background(), pointKey(1, i), m); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	b.Run("parallel", func(b *testing.B) {
		_, tbl := benchRig(b, engine.Options{})
		var n atomic.Int64
		b.ReportAllocs()
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				i := int(n.Add(1))
				m := bigtable.NewMutation()
				m.Set("f", "json", bigtable.Timestamp(i*1000), payload(i))
				if err := tbl.Apply(context.Background(), pointKey(i%100, i), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

// BenchmarkBulk measures batches of 1,000 rows through the official client. Each batch is answered after its sync.
func BenchmarkBulk(b *testing.B) {
	const rows = 1000
	for _, writers := range []int{1, 4} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			_, tbl := benchRig(b, engine.Options{})
			var n atomic.Int64
			b.ReportAllocs()
			b.SetParallelism((writers + 1) / 2)
			run := func() {
				keys, muts := make([]string, rows), make([]*bigtable.Mutation, rows)
				base := int(n.Add(1)) * rows
				for j := range keys {
					keys[j] = pointKey(j%100, base+j)
					muts[j] = bigtable.NewMutation()
					muts[j].Set("f", "json", bigtable.Timestamp((base+j)*1000), payload(j))
				}
				errs, err := tbl.ApplyBulk(context.Background(), keys, muts)
				if err != nil || errs != nil {
					b.Fatal(err, errs)
				}
			}
			if writers == 1 {
				for b.Loop() {
					run()
				}
			} else {
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						run()
					}
				})
			}
			b.ReportMetric(float64(n.Load()*rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkLatest measures a read of an entity's newest point: a prefix scan with a limit of one.
func BenchmarkLatest(b *testing.B) {
	for _, history := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("history=%d", history), func(b *testing.B) {
			_, tbl := benchRig(b, engine.Options{})
			fill(b, tbl, 10, history)
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				err := tbl.ReadRows(context.Background(), bigtable.PrefixRange("acme#readings#site#device-00005#"),
					func(bigtable.Row) bool { n++; return true }, bigtable.LimitRows(1))
				if err != nil || n != 1 {
					b.Fatal(err, n)
				}
			}
		})
	}
}

// BenchmarkScan measures a scan of 10,000 rows.
func BenchmarkScan(b *testing.B) {
	_, tbl := benchRig(b, engine.Options{})
	fill(b, tbl, 1, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		err := tbl.ReadRows(context.Background(), bigtable.PrefixRange("acme#"), func(bigtable.Row) bool { n++; return true })
		if err != nil || n != 10_000 {
			b.Fatal(err, n)
		}
	}
	b.ReportMetric(float64(b.N)*10_000/b.Elapsed().Seconds(), "rows/s")
}

func fill(b *testing.B, tbl *bigtable.Table, entities, history int) {
	b.Helper()
	var keys []string
	var muts []*bigtable.Mutation
	for i := range history * entities {
		m := bigtable.NewMutation()
		m.Set("f", "json", bigtable.Timestamp(i*1000), payload(i))
		keys, muts = append(keys, pointKey(i%entities, i/entities)), append(muts, m)
		if len(keys) == 10_000 || i == history*entities-1 {
			if errs, err := tbl.ApplyBulk(context.Background(), keys, muts); err != nil || errs != nil {
				b.Fatal(err, errs)
			}
			keys, muts = keys[:0], muts[:0]
		}
	}
}

// BenchmarkReadBesideWrites measures reads of one entity while another goroutine writes batches of 500 rows without a
// pause. If the batches go to other entities, a read waits for no sync. If they go to the same entity, it waits for
// one.
func BenchmarkReadBesideWrites(b *testing.B) {
	for _, c := range []struct {
		name        string
		first, many int // the entities that the batches go to
	}{{"none", 0, 0}, {"others", 1, 9}, {"same", 0, 1}} {
		for _, limit := range []int64{1, 1000} {
			b.Run(fmt.Sprintf("%s/rows=%d", c.name, limit), func(b *testing.B) {
				_, tbl := benchRig(b, engine.Options{})
				fill(b, tbl, 10, 10_000)
				ctx, stop := context.WithCancel(context.Background())
				var writer sync.WaitGroup
				if c.many > 0 {
					writer.Go(func() { writeUntil(ctx, b, tbl, c.first, c.many) })
				}
				b.ReportAllocs()
				for b.Loop() {
					n := 0
					err := tbl.ReadRows(context.Background(), bigtable.PrefixRange("acme#readings#site#device-00000#"),
						func(bigtable.Row) bool { n++; return true }, bigtable.LimitRows(limit))
					if err != nil || n != int(limit) {
						b.Fatal(err, n)
					}
				}
				stop()
				writer.Wait()
			})
		}
	}
}

// writeUntil writes batches of the newest points of entities until the context ends.
func writeUntil(ctx context.Context, b *testing.B, tbl *bigtable.Table, first, many int) {
	for i := 20_000; ctx.Err() == nil; i += 500 {
		var keys []string
		var muts []*bigtable.Mutation
		for n := range 500 {
			m := bigtable.NewMutation()
			m.Set("f", "json", bigtable.Timestamp(i*1000), payload(i))
			keys, muts = append(keys, pointKey(first+n%many, i+n)), append(muts, m)
		}
		if errs, err := tbl.ApplyBulk(context.Background(), keys, muts); err != nil || errs != nil {
			b.Error(err, errs)
			return
		}
	}
}
