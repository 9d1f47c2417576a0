package tenants_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// BenchmarkMarksInMemory measures the cost of erasure marks of entities in a store that has read them: memory per mark,
// and the time to read all.
func BenchmarkMarksInMemory(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, _, conn, table := open(b, tsdbtest.Options{})
			const tenants, page = 4, 10_000
			for at := 0; at < n; at += page {
				manyMarks(b, table, fmt.Sprint("tenant", at/page%tenants), at, min(page, n-at))
			}
			before, after := heap(), uint64(0)
			for b.Loop() {
				store := second(b, conn, tsdb.Options{})
				if err := f.readings.For(store, acme).Put(b.Context(), tsdb.NewEntity("site#0", "dev 0"), start, "v"); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				after = heap()
				runtime.KeepAlive(store)
				_ = store.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(after-min(before, after))/float64(n), "B/mark")
		})
	}
}

// heap returns the bytes in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
