package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
)

// attachedFolder is the folder that the process exports until its input ends, instead of running benchmarks.
const attachedFolder = "TIDEMARK_BENCH_EXPORT"

// exportForever is the process beside an ingesting one. It exports everything, again and again.
func exportForever(dir string) error {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	store, err := embedded.New(ctx, embedded.Options{Dir: dir, Attach: true})
	if err != nil {
		return err
	}
	var n int64
	began := time.Now()
	for err == nil {
		_, err = transfer.Export(ctx, store, acme, io.Discard, transfer.ExportOptions{Progress: func(transfer.Exported) { n += 1000 }})
	}
	if ctx.Err() != nil {
		err = nil
	}
	fmt.Fprintf(os.Stderr, "exports read about %.0f points/s\n", float64(n)/time.Since(began).Seconds())
	return err
}

// BenchmarkAttach compares calls of an attached store, in another process's place, with those in process.
func BenchmarkAttach(b *testing.B) {
	dir := b.TempDir()
	owner, err := embedded.Open(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	defer owner.Close()
	if err := owner.Ensure(b.Context(), points); err != nil {
		b.Fatal(err)
	}
	guest, err := embedded.New(b.Context(), embedded.Options{Dir: dir, Attach: true})
	if err != nil {
		b.Fatal(err)
	}
	defer guest.Close()
	base := time.Now().Truncate(time.Second).Add(-time.Hour)
	fleet := fillFleet(b, points.For(owner, acme), "berlin", 100, 100)
	for _, where := range []struct {
		name  string
		store *tsdb.Store
	}{{"in-process", owner}, {"attached", guest}} {
		repo := points.For(where.store, acme)
		for name, call := range map[string]func(i int) error{
			"Latest": func(i int) error { _, err := repo.Latest(b.Context(), fleet[i%len(fleet)]); return err },
			"Put": func(i int) error {
				return repo.Put(b.Context(), fleet[i%len(fleet)], base.Add(time.Duration(i)*time.Millisecond), reading{21.5, 40})
			},
			"LatestMany": func(int) error { _, err := repo.LatestMany(b.Context(), fleet, 1); return err },
			"Range": func(i int) error {
				for _, err := range repo.Range(b.Context(), fleet[i%len(fleet)], tsdb.Interval{}) {
					if err != nil {
						return err
					}
				}
				return nil
			},
		} {
			b.Run(name+"/"+where.name, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if err := call(i); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkIngestBesideExport writes points through a writer into a folder, alone and while another process, which is
// attached, exports everything again and again.
func BenchmarkIngestBesideExport(b *testing.B) {
	for _, exports := range []int{0, 1, 3} {
		b.Run(fmt.Sprintf("exports=%d", exports), func(b *testing.B) {
			for b.Loop() {
				ingestBeside(b, exports)
			}
		})
	}
}

func ingestBeside(b *testing.B, exports int) {
	n := sized(1_000_000)
	dir := b.TempDir()
	store, err := embedded.Open(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(b.Context(), points); err != nil {
		b.Fatal(err)
	}
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	in := points.For(store, acme).Via(w)
	const devices = 1000
	base := time.Now().Truncate(time.Second).Add(-time.Duration(2*n/devices) * time.Second)
	write := func(from, to int) {
		for i := from; i < to; i++ {
			e := tsdb.NewEntity("berlin", fmt.Sprintf("device-%04d", i%devices))
			if err := in.Enqueue(b.Context(), e, base.Add(time.Duration(i/devices)*time.Second), reading{float64(i%100) / 10, 40}); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	write(0, n)
	for range exports {
		stop := startExport(b, dir)
		defer stop()
	}
	time.Sleep(time.Second) // the exports have begun
	began := time.Now()
	write(n, 2*n)
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "points/s")
	if err := w.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func startExport(b *testing.B, dir string) (stop func()) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), attachedFolder+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("the export ends with %v", err)
		}
	}
}
