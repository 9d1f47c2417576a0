package bench

import (
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// BenchmarkLimit measures the check of one point, which includes one reading of the clock.
func BenchmarkLimit(b *testing.B) {
	all := limit.Limits{PointsPerSecond: 1 << 31, BytesPerSecond: 1 << 32, Entities: 100_000, PointBytes: 1000}
	rates := limit.Limits{PointsPerSecond: 1 << 31, BytesPerSecond: 1 << 32}
	ids, entities := make([]tenant.ID, 1000), make([]string, 10_000)
	for i := range ids {
		ids[i] = tenant.MustParse("tenant-" + strconv.Itoa(i))
	}
	for i := range entities {
		entities[i] = "berlin#roof-" + strconv.Itoa(i)
	}
	open := func(b *testing.B, t limit.Table) *limit.Limiter {
		l, err := limit.New(t, limit.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return l
	}
	b.Run("clock", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = time.Now()
		}
	})
	for _, bm := range []struct {
		name   string
		limits limit.Limits
		ids    []tenant.ID
	}{
		{"none", limit.Limits{}, ids[:1]},
		{"rates/1tenant", rates, ids[:1]},
		{"all/1tenant", all, ids[:1]},
		{"all/1000tenants", all, ids},
	} {
		b.Run(bm.name, func(b *testing.B) {
			l := open(b, limit.Table{Defaults: bm.limits})
			for i := range entities { // so that no entity is new
				_ = gate.Of(l).Write(bm.ids[i%len(bm.ids)], "temps", entities[i], 100)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if err := gate.Of(l).Write(bm.ids[i%len(bm.ids)], "temps", entities[i%len(entities)], 100); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
		b.Run(bm.name+"/parallel", func(b *testing.B) {
			l := open(b, limit.Table{Defaults: bm.limits})
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if err := gate.Of(l).Write(bm.ids[i%len(bm.ids)], "temps", entities[i%len(entities)], 100); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	b.Run("refused", func(b *testing.B) {
		l := open(b, limit.Table{Defaults: limit.Limits{PointsPerSecond: 1}})
		b.ReportAllocs()
		for b.Loop() {
			_ = gate.Of(l).Write(ids[0], "temps", entities[0], 100)
		}
	})
}
