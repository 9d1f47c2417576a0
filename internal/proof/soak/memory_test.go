package soak

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// sample is the process's memory at one time.
type sample struct {
	at         time.Duration
	heap       int64 // after a garbage collection
	rss        int64
	goroutines int
}

const (
	slackBytes     = 64 << 20  // not bounded by options: running requests, objects of the client and the engine
	engineBytes    = 256 << 20 // outside the heap: a block cache of 64 MiB, up to six memtables of 16 MiB, and mapped files
	arenaBytes     = 192 << 20 // freed blocks and memtables that C's allocator retains in each further arena
	mostGoroutines = 400
	mostDisk       = 5 << 30
	grownShare     = 1.25
	grownBytes     = 8 << 20
)

// bound returns how much heap the run may use: the test's records, twice the part that a snapshot copies, and what the
// options allow.
func (w *world) bound() int64 {
	account := w.added.bytes()
	for _, d := range w.devices {
		account += d.plain.bytes()
		if d.short != nil {
			account += d.short.bytes()
		}
	}
	return account*3/2 + w.bufferBytes + 2*int64(w.cacheEntries)*1024 + slackBytes
}

// boundRSS returns how much memory the process may use. The heap may double before it is collected. C's allocator has
// one arena with MALLOC_ARENA_MAX=1 in the environment, and otherwise about one for each running thread.
func (w *world) boundRSS() int64 {
	arenas, err := strconv.Atoi(os.Getenv("MALLOC_ARENA_MAX"))
	if err != nil || arenas < 1 {
		arenas = runtime.GOMAXPROCS(0)
	}
	return 2*w.bound() + engineBytes + int64(arenas-1)*arenaBytes
}

// watch samples memory until the load ends, and checks each sample against the bounds.
func (w *world) watch() (samples []sample) {
	debug.SetGCPercent(100) // the bounds are for Go's default
	most := w.bound()
	w.t.Logf("memory: allowed are %d MiB of heap, %d MiB for the process and %d goroutines", most>>20, w.boundRSS()>>20, mostGoroutines)
	for pause(w.ctx, max(2*time.Second, w.duration/200)) {
		w.collectMetrics()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		all, _ := resident()
		s := sample{time.Since(w.begun), int64(m.HeapAlloc), all, runtime.NumGoroutine()}
		samples = append(samples, s)
		if s.heap > most || s.goroutines > mostGoroutines {
			w.fail("memory: got %d MiB of heap and %d goroutines, want at most %d MiB and %d", s.heap>>20, s.goroutines, most>>20, mostGoroutines)
		}
		if s.rss > w.boundRSS() && !testkit.Raced {
			w.fail("memory: got %d MiB for the process, want at most %d MiB", s.rss>>20, w.boundRSS()>>20)
		}
		if j := w.writer.Load().Stats(); j.Journal.Bytes > j.Journal.Limit+(1<<20) || j.BufferedBytes > w.bufferBytes {
			w.fail("memory: the journal holds %d of %d bytes, the buffer %d of %d", j.Journal.Bytes, j.Journal.Limit, j.BufferedBytes, w.bufferBytes)
		}
	}
	return samples
}

// checkGrowth compares the second quarter of the samples with the last. Shorter runs are still warming up.
func (w *world) checkGrowth(samples []sample) {
	if len(samples) < 8 {
		return
	}
	n := len(samples) / 4
	middle := func(part []sample) (heap, goroutines int64) {
		var hs, gs []int64
		for _, s := range part {
			hs, gs = append(hs, s.heap), append(gs, int64(s.goroutines))
		}
		slices.Sort(hs)
		slices.Sort(gs)
		return hs[len(hs)/2], gs[len(gs)/2]
	}
	h2, g2 := middle(samples[n : 2*n])
	h4, g4 := middle(samples[3*n:])
	peak := slices.MaxFunc(samples, func(a, b sample) int { return int(a.heap - b.heap) })
	w.t.Logf("memory: heap %d MiB in the second quarter, %d MiB in the last, at most %d MiB; goroutines %d and %d; %s",
		h2>>20, h4>>20, peak.heap>>20, g2, g4, process())
	if d := w.disk(); d > mostDisk {
		w.fail("got %d MiB for the table and the journal, want at most %d MiB", d>>20, mostDisk>>20)
	}
	if w.duration < time.Minute {
		return
	}
	if float64(h4) > grownShare*float64(h2)+grownBytes || g4 > g2*2+20 {
		w.fail("memory grows: heap %d MiB in the second quarter and %d MiB in the last, goroutines %d and %d", h2>>20, h4>>20, g2, g4)
	}
}

// resident returns the process's resident memory, and how much of it is file pages, which the system can reclaim. It
// returns 0 if the system does not say.
func resident() (all, files int64) {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		name, v, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			all = kib << 10
		case "RssFile":
			files = kib << 10
		}
	}
	return all, files
}

// process describes the process's memory: Go's own, file pages, and the rest, which the storage gets from C's
// allocator.
func process() string {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	all, files := resident()
	of := int64(m.Sys - m.HeapReleased)
	return fmt.Sprintf("RSS %d MiB (Go's %d, files %d, others %d)", all>>20, of>>20, files>>20, (all-files-of)>>20)
}

// disk returns the size of the run's folder.
func (w *world) disk() (bytes int64) {
	_ = filepath.WalkDir(w.dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil // the file was removed meanwhile
	})
	return bytes
}

// report logs the progress at intervals.
func (w *world) report() {
	for pause(w.ctx, min(30*time.Second, w.duration/3)) {
		w.line()
	}
}

func (w *world) line() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s, st := &w.stats, w.writer.Load().Stats()
	w.t.Logf("%v: put %d, acknowledged %d (rejected %d, unknown %d, dead %d), events %d (dead %d), in the journal %d points, %d KiB; reads %d (failed %d) of %d points; "+
		"faults %d, outages %d; writer opened again %d times (%d with points left), flushed %d; worker %d passes, %d buckets; collected %d times; heap %d MiB, %s, disk %d MiB",
		time.Since(w.begun).Round(time.Second), s.put.Load(), s.acked.Load(), s.rejected.Load(), s.unknown.Load(), s.buried.Load(), s.events.Load(), s.buriedEvents.Load(),
		st.Journal.Points, st.Journal.Bytes>>10, s.reads.Load(), s.readErrors.Load(), s.points.Load(),
		s.faults.Load(), s.outages.Load(), s.rotations.Load(), s.kept.Load(), s.flushes.Load(), s.passes.Load(), s.buckets.Load(), s.collections.Load(),
		m.HeapAlloc>>20, process(), w.disk()>>20)
}
