package history

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/internal/reach"
)

var (
	runs = flag.Int("history.runs", 40, "how many histories run with a simulated clock; a tenth as many, and at least 4, run in real time")
	seed = flag.Uint64("history.seed", 1, "what the first history follows from; the others follow from the numbers after it")
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		if err := serve(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	reach.Count()
	goleak.VerifyTestMain(m)
}

// TestHistories runs histories with a simulated clock. Half of them have weak scans.
func TestHistories(t *testing.T) {
	all := newTotals(t)
	for i := range *runs {
		s := *seed + uint64(i)
		p := plan{seed: s, weak: s%2 == 0, collects: s%4 < 2, clients: 8, load: 3 * time.Second}
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			var w *world
			synctest.Test(t, func(t *testing.T) { w = runWorld(t, p) })
			all.add(t, w)
		})
	}
}

// TestHistoriesInRealTime runs histories with an engine whose syncs take 20 ms, and with one in a process of its own,
// which is killed: over TCP, and with stores that are attached to its folder.
func TestHistoriesInRealTime(t *testing.T) {
	all := newTotals(t)
	for i := range max(6, *runs/10) {
		s := *seed + uint64(i)
		slow := s%6 == 2 || s%6 == 3
		p := plan{
			seed: s, weak: s%2 == 0, real: true, tcp: s%6 < 2, slowSync: slow, collects: slow, attach: s%6 >= 4, clients: 8, load: 3 * time.Second,
		}
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			all.add(t, runWorld(t, p))
		})
	}
}

// longRun is how many histories together have to reach each rare branch.
const longRun = 2000

// TestRareBranches checks that the histories before have reached each branch of package reach, if they were many.
func TestRareBranches(t *testing.T) {
	for branch, times := range reach.Counts() {
		t.Logf("%v: reached %d times", branch, times)
		if times == 0 && *runs >= longRun {
			t.Errorf("%d histories have not reached the branch %v", *runs, branch)
		}
	}
}

// totals are the figures of histories.
type totals struct {
	mu                                                sync.Mutex
	histories, calls, faults, parts, steps, undecided [2]int // without and with weak scans
}

// newTotals returns totals that are logged when all histories have ended.
func newTotals(t *testing.T) *totals {
	s := new(totals)
	t.Cleanup(func() {
		for weak, scans := range []string{"scans of one moment", "weak scans"} {
			t.Logf("%s: %d histories of %d calls with %d faults; Porcupine was given %d operations in %d parts, and left %d of these undecided",
				scans, s.histories[weak], s.calls[weak], s.faults[weak], s.steps[weak], s.parts[weak], s.undecided[weak])
		}
	})
	return s
}

// add decides a history and adds its figures.
func (s *totals) add(t *testing.T, w *world) {
	v := w.recorder.check()
	for _, text := range v.wrong {
		t.Errorf("%v: %s", w.plan, text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 0
	if w.weak {
		i = 1
	}
	s.histories[i]++
	s.calls[i] += int(w.calls.Load())
	s.faults[i] += int(w.faults.Load())
	s.parts[i] += v.parts
	s.steps[i] += v.ops
	s.undecided[i] += v.undecided
}
