package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
)

// BenchmarkEnqueueJournal measures Enqueue with a journal, where each call waits until its point is on disk. Case sync
// is the limit of one caller on this disk: a write into a file that has its size already, and one sync, for each point.
//
// The journal is in the default folder for temporary files. Set TMPDIR to a folder on a disk; a folder in memory shows
// the processor's part.
func BenchmarkEnqueueJournal(b *testing.B) {
	b.Run("sync", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "log"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		const size = 4 << 20
		record := make([]byte, 128)
		if _, err := f.Write(make([]byte, size)); err != nil {
			b.Fatal(err)
		}
		n := 0
		for b.Loop() {
			if _, err := f.WriteAt(record, int64(n*len(record)%size)); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			n++
		}
		pointsPerSecond(b, n)
	})
	for _, callers := range []int{1, 8, 64} {
		b.Run("callers="+strconv.Itoa(callers), func(b *testing.B) {
			repo, _, store := setupIngest(b, engine.Options{})
			w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: b.TempDir()}})
			if err != nil {
				b.Fatal(err)
			}
			in, base := repo.Via(w), time.Now()
			b.ReportAllocs()
			b.ResetTimer()
			var next atomic.Int64
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						if err := in.Enqueue(b.Context(), roof, base.Add(time.Duration(n)*time.Microsecond), reading{21.5, 40}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			pointsPerSecond(b, b.N)
			b.StopTimer()
			if err := w.Close(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}
