package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// BenchmarkLatestFields measures reads of the newest values of 20 fields of each of 100 devices, whose points have one
// field each, by a scan of their points (scan), and of the newest point of each from heads (head), for comparison.
func BenchmarkLatestFields(b *testing.B) {
	const n, wide = 100, 20
	sparse := tsdb.MustDefine("sparse", tsdb.Key("site", "device"), codec.Records(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds})
	store := plain(b, sparse, heads)
	ctx, repo := context.Background(), sparse.For(store, acme)
	devices := fillFleet(b, heads.For(store, acme), "berlin", n, wide)
	base := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := range wide {
		batch := make([]tsdb.Point[codec.Record], n)
		for d, e := range devices {
			value := codec.NewRecord(codec.Field{Name: fmt.Sprintf("field-%02d", i), Value: codec.Float(float64(i))})
			batch[d] = tsdb.Point[codec.Record]{Entity: e, Time: base.Add(time.Duration(i) * time.Second), Value: value}
		}
		if _, err := repo.PutMany(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			all, err := repo.LatestFieldsMany(ctx, devices, tsdb.FieldOptions{})
			if err != nil || len(all) != n || all[0].Times.Len() != wide {
				b.Fatal(len(all), err)
			}
		}
	})
	b.Run("head", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if all, err := heads.For(store, acme).LatestMany(ctx, devices, 1); err != nil || len(all) != n {
				b.Fatal(err)
			}
		}
	})
}
