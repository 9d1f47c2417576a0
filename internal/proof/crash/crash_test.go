package crash_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/crash"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

var (
	seed   = flag.Uint64("crash.seed", 0, "what is done, and which crashes are tried; 0 draws one")
	length = flag.Int("crash.steps", 200, "how many operations are done")
	tries  = flag.Int("crash.tries", 120, "about how many crashes are tried, and a tenth as many faults; 0 is all")
	only   = flag.Int("crash.at", 0, "try only the crashes, or the faults, at this operation on files")
	saved  = flag.String("crash.log", "", "operations that a failed test has saved, in place of new ones")
)

// The ways in which a workload ends at an operation.
var crashes = []struct {
	name    string
	half    bool // half of the operation is done
	percent int  // of what was not synced stays; 100 is a process that is killed
}{
	{"killed", false, 100},
	{"killed in the middle of the write", true, 100},
	{"all that was not synced is lost", false, 0},
	{"most that was not synced is lost", true, 10},
	{"half of what was not synced is lost", true, 50},
	{"little that was not synced is lost", true, 90},
}

// TestCrashPoints stops a process that writes to a store and its journal at each operation on files, kills the process
// or the machine, and opens what is left.
func TestCrashPoints(t *testing.T) {
	r := begin(t)
	ops := recorded(t, "everything", crash.NewDisk(), crash.Fault{})
	p := &pool{t: t, ops: ops, limit: make(chan struct{}, runtime.GOMAXPROCS(0))}
	p.tryAll(r, crash.NewDisk(), ops, nil, share(len(crashes)*len(ops), 120))
	p.report("crashes")
}

// TestCrashWhileOpening stops a process that opens what a crash has left.
func TestCrashWhileOpening(t *testing.T) {
	r := begin(t)
	ops := recorded(t, "everything", crash.NewDisk(), crash.Fault{})
	opens := 2
	if *tries == 0 {
		opens = 20
	}
	for range opens {
		k := r.IntN(len(ops))
		disk, err := crash.NewDisk().After(ops[:k])
		if err != nil {
			t.Fatal(err)
		}
		disk = crashed(disk, crash.Loss{Percent: []int{0, 50, 100}[r.IntN(3)], Rand: r})
		again := run(t, "open", disk, crash.Fault{})
		p := &pool{t: t, ops: ops, what: fmt.Sprintf("while it opens again after operation %d", k), limit: make(chan struct{}, runtime.GOMAXPROCS(0))}
		p.tryAll(r, disk, again, ops[:k], share(len(crashes)*len(again), 15))
		p.report("crashes")
	}
}

// TestFaults fails one operation on files, or all from one on, and checks what is left, also if the machine then fails.
func TestFaults(t *testing.T) {
	r := begin(t)
	counted := 0
	for _, o := range recorded(t, "everything", crash.NewDisk(), crash.Fault{}) {
		if o.Counts() {
			counted++
		}
	}
	p := &pool{t: t, limit: make(chan struct{}, runtime.GOMAXPROCS(0))}
	stays := share(6*counted, 10)
	for k := 1; k <= counted; k++ {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EMFILE} {
			for _, forever := range []bool{false, true} {
				if (*only == 0 && !stays(r)) || (*only != 0 && *only != k) {
					continue
				}
				fault := crash.Fault{At: k, Errno: errno, Forever: forever}
				sub := rand.New(rand.NewPCG(r.Uint64(), 1))
				p.do(func() {
					ops := run(t, "everything", crash.NewDisk(), fault)
					disk, err := crash.NewDisk().After(ops)
					if err != nil {
						t.Error(err)
						return
					}
					for _, loss := range []crash.Loss{{Percent: 100}, {}, {Percent: 50, Rand: sub}} {
						p.check(crashed(disk, loss), ops, fmt.Sprintf("after %v at operation %d, forever %v; then %s", errno, k, forever, lossText(loss)))
					}
				})
			}
		}
	}
	p.report("faults")
}

// crashed returns what a loss leaves. If that is everything, the machine goes on.
func crashed(d *crash.Disk, loss crash.Loss) *crash.Disk {
	if loss.Percent == 100 {
		return d.Killed()
	}
	return d.Crash(loss)
}

func lossText(l crash.Loss) string {
	if l.Percent == 100 {
		return "the process ends"
	}
	return fmt.Sprintf("the machine fails, and keeps %d percent of what was not synced", l.Percent)
}

// begin draws a seed.
func begin(t *testing.T) *rand.Rand {
	t.Helper()
	testkit.Plain(t)
	if *seed == 0 {
		*seed = rand.Uint64N(1e6) + 1
		t.Cleanup(func() { *seed = 0 })
	}
	t.Logf("-crash.seed=%d", *seed)
	return rand.New(rand.NewPCG(*seed, 2))
}

// share returns a function that chooses about n of total cases for every 120 tries.
func share(total, n int) func(*rand.Rand) bool {
	n = n * *tries / 120
	return func(r *rand.Rand) bool { return *tries == 0 || r.IntN(total) < n }
}

func run(t *testing.T, workload string, disk *crash.Disk, fault crash.Fault) []crash.Op {
	t.Helper()
	return crash.Run(t, workload, disk, fault, fmt.Sprintf("-crash.seed=%d", *seed))
}

// recorded runs a workload, or reads what a failed test has saved of one.
func recorded(t *testing.T, workload string, start *crash.Disk, fault crash.Fault) []crash.Op {
	t.Helper()
	if *saved == "" {
		return run(t, workload, start, fault)
	}
	ops, err := crash.Load(*saved)
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// pool checks what crashes leave, several at a time.
type pool struct {
	t     *testing.T
	ops   []crash.Op // to save if a check fails
	what  string
	limit chan struct{}
	group sync.WaitGroup

	mu        sync.Mutex
	n, failed int
	began     time.Time
}

func (p *pool) do(f func()) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	p.limit <- struct{}{}
	p.group.Go(func() {
		defer func() { <-p.limit }()
		f()
	})
}

// tryAll tries crashes of a workload that begins with a disk, after what was done before.
func (p *pool) tryAll(r *rand.Rand, disk *crash.Disk, ops, before []crash.Op, tries func(*rand.Rand) bool) {
	disk = disk.Killed()
	for k := 0; k <= len(ops); k++ {
		if k > 0 {
			if err := disk.Apply(ops[k-1]); err != nil {
				p.t.Fatalf("operation %d, %v: %v", k-1, ops[k-1], err)
			}
		}
		if k < len(ops) && !ops[k].Counts() || *only != 0 && *only != k {
			continue
		}
		for _, c := range crashes {
			half := c.half && k < len(ops) && ops[k].Kind == crash.Write && len(ops[k].Data) > 1
			if *only == 0 && !tries(r) || c.name == crashes[1].name && !half {
				continue
			}
			var image *crash.Disk
			end := func() { image = crashed(disk, crash.Loss{Percent: c.percent, Rand: r}) }
			if half {
				disk.InWrite(ops[k], end)
			} else {
				end()
			}
			p.do(func() {
				p.check(image, slices.Concat(before, ops[:k]), fmt.Sprintf("-crash.at=%d: %s %s", k, c.name, p.what))
			})
		}
	}
}

// check opens a disk and compares it with what the operations have acknowledged.
func (p *pool) check(image *crash.Disk, ops []crash.Op, what string) {
	l, err := newLedger(steps(*seed, *length), ops)
	if err != nil {
		p.t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	var wrong []string
	crash.InFolder(p.t, func(dir string) {
		if err := image.Write(dir); err != nil {
			wrong = []string{err.Error()}
			return
		}
		wrong = l.check(ctx, dir)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	if len(wrong) > 0 {
		if p.failed++; p.failed <= 10 {
			p.t.Errorf("-crash.seed=%d %s\n%s", *seed, what, strings.Join(wrong, "\n"))
		}
	}
}

// report waits for all checks.
func (p *pool) report(what string) {
	p.group.Wait()
	counted := 0
	for _, o := range p.ops {
		if o.Counts() {
			counted++
		}
	}
	p.t.Logf("%d %s of %d operations on files in %v; %d violations", p.n, what, counted, time.Since(p.began).Round(time.Millisecond), p.failed)
	if p.failed > 0 && len(p.ops) > 0 {
		name := filepath.Join(os.TempDir(), fmt.Sprintf("tidemark-crash-%d.log", *seed))
		if err := crash.Save(name, p.ops); err != nil {
			p.t.Error(err)
		}
		p.t.Logf("-crash.log=%s has the operations", name)
	}
}
