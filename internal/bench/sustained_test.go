package bench

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
)

var sustainedPoints = flag.Int("sustained.points", 200_000, "how many points BenchmarkSustained writes")

// countingFS counts what is written to the files that it creates: logs, table files and manifests.
type countingFS struct {
	vfs.FS
	written *atomic.Int64
}

func (c countingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := c.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	return &countingFile{File: file, written: c.written}, nil
}

type countingFile struct {
	vfs.File
	written *atomic.Int64
}

func (f *countingFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written.Add(int64(n))
	return n, err
}

// BenchmarkSustained writes many points of 1,000 devices in turn through a writer, in a folder, each call synced to
// disk, while another goroutine reads the latest point of one device after the other. It logs the rate of each million,
// and reports the slowest of them, the bytes written to disk per byte of key and payload, the time of the reads, the
// most memory that the process had (on Linux), and the folder's size.
func BenchmarkSustained(b *testing.B) {
	for b.Loop() {
		sustain(b, *sustainedPoints)
	}
}

func sustain(b *testing.B, n int) {
	const devices = 1000
	ctx := context.Background()
	var written atomic.Int64
	dir := b.TempDir()
	store := plainOn(b, engine.Options{Dir: dir, FS: countingFS{vfs.Default, &written}}, points)
	repo := points.For(store, acme)
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	in := repo.Via(w)
	base := time.Now().Truncate(time.Millisecond).Add(-time.Duration(n/devices) * time.Second)
	fleet := make([]tsdb.Entity, devices)
	for i := range fleet {
		fleet[i] = tsdb.NewEntity("berlin", fmt.Sprintf("device-%04d", i))
		if err := repo.Put(ctx, fleet[i], base.Add(-time.Second), reading{21.5, 40}); err != nil {
			b.Fatal(err)
		}
	}
	stop, reads := make(chan struct{}), make(chan []time.Duration)
	go func() { reads <- readLatest(b, repo, fleet, stop) }()

	rnd := rand.New(rand.NewPCG(1, 2))
	values, payloads := make([]reading, 4096), make([]int, 4096)
	for i := range values {
		values[i] = reading{TempC: float64(150+rnd.IntN(100)) / 10, Humidity: float64(rnd.IntN(100))}
		payload, err := json.Marshal(values[i])
		if err != nil {
			b.Fatal(err)
		}
		payloads[i] = len(payload)
	}
	key := len("acme#points#") + len(fleet[0].String()) + len("#0000000000000000000")
	bytes, slowest := 0, math.Inf(1)
	written.Store(0)
	start := time.Now()
	last, from := start, 0
	rate := func(to int) {
		r := float64(to-from) / time.Since(last).Seconds()
		b.Logf("%10d points: %8.0f points/s, %5.2f bytes written per byte", to, r, float64(written.Load())/float64(bytes))
		slowest = min(slowest, r)
		last, from = time.Now(), to
	}
	for i := range n {
		v := rnd.IntN(len(values))
		bytes += key + payloads[v]
		if err := in.Enqueue(ctx, fleet[i%devices], base.Add(time.Duration(i/devices)*time.Second), values[v]); err != nil {
			b.Fatal(err)
		}
		if (i+1)%1_000_000 == 0 {
			rate(i + 1)
		}
	}
	if err := w.Close(ctx); err != nil {
		b.Fatal(err)
	}
	if from < n {
		rate(n)
	}
	took := time.Since(start)
	close(stop)
	latencies := <-reads
	if p, err := repo.Latest(ctx, fleet[(n-1)%devices]); err != nil || !p.Time.Equal(base.Add(time.Duration((n-1)/devices)*time.Second)) {
		b.Fatalf("the latest point after the load: %v, %v", p, err)
	}

	slices.Sort(latencies)
	b.ReportMetric(float64(n)/took.Seconds(), "points/s")
	b.ReportMetric(slowest, "slowest-points/s")
	b.ReportMetric(float64(written.Load())/float64(bytes), "written/byte")
	b.ReportMetric(float64(latencies[len(latencies)/2].Microseconds()), "latest-p50-us")
	b.ReportMetric(float64(latencies[len(latencies)*99/100].Microseconds()), "latest-p99-us")
	b.ReportMetric(float64(size(b, dir))/float64(bytes), "disk/byte")
	if peak, ok := peakMemory(); ok {
		b.ReportMetric(peak, "peak-MiB")
	}
}

// readLatest reads the latest points of a fleet, at most 500 a second, and returns how long each read took.
func readLatest(b *testing.B, repo *tsdb.Repository[reading], fleet []tsdb.Entity, stop <-chan struct{}) (took []time.Duration) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		start := time.Now()
		if _, err := repo.Latest(context.Background(), fleet[i%len(fleet)]); err != nil {
			b.Error(err)
			return append(took, 0)
		}
		took = append(took, time.Since(start))
		select {
		case <-stop:
			return took
		case <-tick.C:
		}
	}
}

// peakMemory returns the most memory that the process has had at once, in MiB, where the system reports it.
func peakMemory() (mib float64, ok bool) { return memory("VmHWM:") }

// memory returns a size in /proc/self/status.
func memory(name string) (mib float64, ok bool) {
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, ok := strings.Cut(string(text), name)
	if !ok {
		return 0, false
	}
	_, err := fmt.Sscanf(rest, "%f", &mib)
	return mib / 1024, err == nil
}

// size returns the bytes of a folder's files.
func size(b *testing.B, dir string) (total int64) {
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return total
}
