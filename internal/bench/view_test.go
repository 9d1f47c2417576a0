package bench

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// BenchmarkViews measures puts and reads of one point at a time, in the table and through the tenant's authorized view.
// It makes a new repository for each call, as servers do.
func BenchmarkViews(b *testing.B) {
	for _, mode := range []struct {
		name  string
		views []tenant.ID
	}{{"table", nil}, {"view", []tenant.ID{acme}}} {
		store, _ := tsdbtest.Open(b, tsdbtest.Options{ViewsFor: mode.views}, readings)
		newest := fill(b, readings.For(store, acme), 1000)
		ctx, e := context.Background(), tsdb.NewEntity("berlin", "roof-7")
		b.Run("put/"+mode.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				if err := readings.For(store, acme).Put(ctx, e, newest.Add(time.Duration(i)), reading{21.5, 40}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("latest/"+mode.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := readings.For(store, acme).Latest(ctx, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
