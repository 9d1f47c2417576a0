package soak

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// sample is what the process holds at one time.
type sample struct {
	at         time.Duration
	heap       int64 // after a collection
	rss        int64
	goroutines int
}

const (
	slackBytes     = 64 << 20  // what no option states: requests under way, the client's and the engine's own objects
	engineBytes    = 256 << 20 // beside the heap: a block cache of 64 MiB, up to six memtables of 16 MiB, and the files that are mapped
	arenaBytes     = 192 << 20 // what C's allocator keeps in each further arena of blocks and memtables that were given back
	mostGoroutines = 400
	mostDisk       = 5 << 30
	grownShare     = 1.25
	grownBytes     = 8 << 20
)

// bound is how much heap the run may hold: what the account takes, twice the part that a snapshot copies, and what the
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

// boundRSS is the same for the whole process: a heap may be twice as large before it is collected. With MALLOC_ARENA_MAX=1 in
// the environment C's allocator has one arena, and else about one for each thread that runs.
func (w *world) boundRSS() int64 {
	arenas, err := strconv.Atoi(os.Getenv("MALLOC_ARENA_MAX"))
	if err != nil || arenas < 1 {
		arenas = runtime.GOMAXPROCS(0)
	}
	return 2*w.bound() + engineBytes + int64(arenas-1)*arenaBytes
}

// watch samples memory until the load ends, and holds each sample against the bounds.
func (w *world) watch() (samples []sample) {
	most := w.bound()
	w.t.Logf("memory: at most %d MiB of heap, %d MiB of the process and %d goroutines", most>>20, w.boundRSS()>>20, mostGoroutines)
	for pause(w.ctx, max(2*time.Second, w.duration/200)) {
		w.collectMetrics()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		all, _ := resident()
		s := sample{time.Since(w.begun), int64(m.HeapAlloc), all, runtime.NumGoroutine()}
		samples = append(samples, s)
		if s.heap > most || s.goroutines > mostGoroutines {
			w.fail("memory: %d MiB of heap and %d goroutines, at most %d MiB and %d are allowed", s.heap>>20, s.goroutines, most>>20, mostGoroutines)
		}
		if s.rss > w.boundRSS() && !testkit.Raced {
			w.fail("memory: the process takes %d MiB, at most %d MiB are allowed", s.rss>>20, w.boundRSS()>>20)
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
		w.fail("the table and the journal take %d MiB, at most %d are allowed", d>>20, mostDisk>>20)
	}
	if w.duration < time.Minute {
		return
	}
	if float64(h4) > grownShare*float64(h2)+grownBytes || g4 > g2*2+20 {
		w.fail("memory grows: heap %d MiB in the second quarter and %d MiB in the last, goroutines %d and %d", h2>>20, h4>>20, g2, g4)
	}
}

// resident is the memory that the system has given to the process, and how much of it are pages of files, which it may
// take back; 0 where it does not say.
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

// process tells what the process takes, part by part: Go's own memory, pages of files, and the rest, which the engine's
// storage takes by C's allocator.
func process() string {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	all, files := resident()
	of := int64(m.Sys - m.HeapReleased)
	return fmt.Sprintf("RSS %d MiB (Go's %d, files %d, others %d)", all>>20, of>>20, files>>20, (all-files-of)>>20)
}

// disk is what the run's folder takes.
func (w *world) disk() (bytes int64) {
	_ = filepath.WalkDir(w.dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil // files come and go
	})
	return bytes
}

// report tells how the run goes, every so often.
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
