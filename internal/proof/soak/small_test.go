package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var small = flag.Bool("small", false, "run TestSmallMemory, which needs a memory controller of cgroup v1 or v2, and root")

// inSmall is the folder of the process that TestSmallMemory starts.
const inSmall = "TIDEMARK_TEST_SMALL_MEMORY"

const (
	smallMemory  = 256 << 20
	smallDevices = 100_000
	smallPoints  = 10        // of each device
	smallBacklog = 800 << 20 // bytes in the journal
)

// TestSmallMemory runs a service in a process that may use 256 MiB, with a soft limit of Go's runtime below that: bulk
// readers, the latest of 100,000 devices, exports, and a journal that fills up to a gigabyte while the store cannot be
// written, and is then delivered. The kernel kills the process if it needs more.
func TestSmallMemory(t *testing.T) {
	if dir := os.Getenv(inSmall); dir != "" {
		serveSmall(t, dir)
		return
	}
	if !*small {
		t.Skip("it takes minutes; give -small")
	}
	procs := memoryGroup(t)
	// The shell joins the group before it becomes the process, so that all of its memory counts.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$0" && exec "$@"`, procs, os.Args[0], "-test.run=^TestSmallMemory$", "-test.v", "-test.timeout=30m")
	cmd.Env = append(os.Environ(), inSmall+"="+t.TempDir(), "GOMEMLIMIT=96MiB")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		t.Fatalf("the kernel killed the process, which may use %d MiB", smallMemory>>20)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// memoryGroup makes a control group with little memory, and returns its file of processes.
func memoryGroup(t *testing.T) string {
	t.Helper()
	root, limit := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		root, limit = filepath.Join(root, "memory"), "memory.limit_in_bytes"
	}
	dir := filepath.Join(root, fmt.Sprintf("tidemark-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no control group with a memory limit can be made here: %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, limit), fmt.Append(nil, smallMemory), 0o600); err != nil {
		t.Skipf("no memory limit can be set here: %v", err)
	}
	return filepath.Join(dir, "cgroup.procs")
}

func serveSmall(t *testing.T, dir string) {
	ctx, acme := t.Context(), tenant.MustParse("acme")
	texts := tsdb.MustDefine("texts", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{})
	var conn tsdbtest.Conn
	store, err := embedded.New(ctx, embedded.Options{Dir: filepath.Join(dir, "store"), CacheBytes: 16 << 20, DialOptions: conn.DialOptions()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	fatal := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	fatal(store.Ensure(ctx, texts))
	repo := texts.For(store, acme)
	device := func(i int) tsdb.Entity { return tsdb.NewEntity("berlin", fmt.Sprintf("device-%06d", i)) }
	base := time.Now().Add(-time.Hour).Truncate(time.Second)
	text := strings.Repeat("0123456789abcdef", 8)
	step := func(name string, f func()) {
		began := time.Now()
		f()
		t.Logf("%s: %v, most memory so far %d MiB", name, time.Since(began).Round(time.Millisecond), peakMiB(t))
	}
	w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(dir, "journal")}})
	if err != nil {
		t.Fatal(err)
	}
	in := repo.Via(w)
	write := func(device func(int) tsdb.Entity, from, to int, text string) {
		var senders sync.WaitGroup
		for s := range 16 {
			senders.Go(func() {
				for i := from + s; i < to; i += 16 {
					fatal(in.EnqueueFunc(ctx, device(i%smallDevices), base.Add(time.Duration(i/smallDevices)*time.Second), text, func(out tsdb.Outcome) { fatal(out.Err) }))
				}
			})
		}
		senders.Wait()
	}
	step("write", func() {
		write(device, 0, smallDevices*smallPoints, text)
		fatal(w.Flush(ctx))
	})
	step("read all points by 8 readers, and export them", func() {
		var running sync.WaitGroup
		for range 8 {
			running.Go(func() {
				n := 0
				for _, err := range repo.Under(tsdb.AllEntities()).Latest(ctx) {
					fatal(err)
					n++
				}
				if n != smallDevices {
					t.Errorf("%d devices have a latest point, want %d", n, smallDevices)
				}
			})
		}
		running.Go(func() {
			done, err := transfer.Export(ctx, store, acme, io.Discard, transfer.ExportOptions{})
			fatal(err)
			if done.Points != smallDevices*smallPoints {
				t.Errorf("%d points are exported, want %d", done.Points, smallDevices*smallPoints)
			}
		})
		running.Wait()
	})
	step("the latest of all devices", func() {
		entities := make([]tsdb.Entity, smallDevices)
		for i := range entities {
			entities[i] = device(i)
		}
		got, err := repo.LatestMany(ctx, entities, 1)
		fatal(err)
		for _, r := range got {
			if want := base.Add((smallPoints - 1) * time.Second); !r.Points[0].Time.Equal(want) {
				t.Errorf("the latest point of %s is at %v, want %v", r.Entity, r.Points[0].Time, want)
				break
			}
		}
	})
	step("a journal of a gigabyte", func() {
		conn.Inject(tsdbtest.FailEntries(codes.NotFound, func(string) bool { return true }))
		long := strings.Repeat(text, 32)
		for i := 0; w.Stats().Journal.Bytes < smallBacklog && !t.Failed(); i += 1000 {
			write(func(i int) tsdb.Entity { return tsdb.NewEntity("late", fmt.Sprintf("device-%06d", i)) }, i, i+1000, long)
		}
		conn.Clear()
	})
	step("its delivery", func() { fatal(w.Flush(ctx)) })
	fatal(w.Close(context.Background()))
}

// peakMiB returns the most memory that the process has used.
func peakMiB(t *testing.T) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u.Maxrss >> 10
}
