package bench

import (
	"context"
	"math"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
)

// BenchmarkOnChange measures a writer that stores everything, one whose program has another sink that stores on change,
// and a sink that leaves out nine points of ten. 1,000 points a second come from each of 100 devices.
func BenchmarkOnChange(b *testing.B) {
	same := func(last, next reading) bool { return math.Abs(last.TempC-next.TempC) <= 0.5 }
	for name, sink := range map[string]func(*tsdb.Sink[reading]) *tsdb.Sink[reading]{
		"every":  func(s *tsdb.Sink[reading]) *tsdb.Sink[reading] { return s },
		"beside": func(s *tsdb.Sink[reading]) *tsdb.Sink[reading] { return s },
		"equal":  func(s *tsdb.Sink[reading]) *tsdb.Sink[reading] { return s.OnChange(tsdb.OnChange[reading]{}) },
		"band": func(s *tsdb.Sink[reading]) *tsdb.Sink[reading] {
			return s.OnChange(tsdb.OnChange[reading]{Same: same})
		},
		"news": func(s *tsdb.Sink[reading]) *tsdb.Sink[reading] {
			return s.OnChange(tsdb.OnChange[reading]{Same: func(_, _ reading) bool { return false }})
		},
	} {
		b.Run(name, func(b *testing.B) {
			repo, tbl, store := setupIngest(b, engine.Options{Dir: b.TempDir()})
			onChange(b, name, repo, store, tbl, sink)
		})
	}
}

func onChange(b *testing.B, name string, repo *tsdb.Repository[reading], store *tsdb.Store, tbl *bigtable.Table, sink func(*tsdb.Sink[reading]) *tsdb.Sink[reading]) {
	ctx, base := context.Background(), time.Now()
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if name == "beside" {
		if err := repo.Via(w).OnChange(tsdb.OnChange[reading]{}).Enqueue(ctx, tsdb.NewEntity("other", "one"), base, reading{}); err != nil {
			b.Fatal(err)
		}
	}
	var devices [100]tsdb.Entity
	for i := range devices {
		devices[i] = tsdb.NewEntity("berlin", string(rune('a'+i/10))+string(rune('a'+i%10)))
	}
	in := sink(repo.Via(w))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		at, temp := n/len(devices), 0.0
		switch name {
		case "equal":
			temp = float64(at / 20) // the point before a step is stored, too
		case "band":
			temp = float64(at/20) + float64(at%20)/100
		default:
			temp = float64(at)
		}
		if err := in.Enqueue(ctx, devices[n%len(devices)], base.Add(time.Duration(at)*time.Millisecond), reading{temp, 40}); err != nil {
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
	rows, bytes := 0, 0
	if err := tbl.ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		rows, bytes = rows+1, bytes+len(r.Key())
		for _, items := range r {
			for _, it := range items {
				bytes += len(it.Value)
			}
		}
		return true
	}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(rows)/float64(n), "rows/point")
	b.ReportMetric(float64(bytes)/float64(n), "bytes/point")
}
