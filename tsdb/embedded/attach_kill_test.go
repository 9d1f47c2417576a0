package embedded_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

const (
	killDir    = "TIDEMARK_ATTACH_DIR"
	killEntity = "TIDEMARK_ATTACH_ENTITY"
	killNoSync = "TIDEMARK_ATTACH_NOSYNC"
)

// TestAttachKills kills processes of one folder, again and again, whether they are attached or the owner. What a
// process was told is stored, is stored.
func TestAttachKills(t *testing.T) {
	if os.Getenv(killDir) != "" {
		writeUntilKilled(t)
		return
	}
	dir := t.TempDir()
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	var all []*killed
	for range 4 { // the first one becomes the owner
		all = append(all, startChild(t, dir, len(all)))
	}
	for range 12 {
		live := all[len(all)-4:]
		before := make([]int64, len(live))
		for i, c := range live {
			before[i] = c.acked.Load()
		}
		for i, c := range live { // each gets on, whatever was killed before
			c.await(t, before[i]+5)
		}
		i := len(all) - 4 + rand.IntN(4)
		all[i].kill()
		all[i], all[len(all)-4] = all[len(all)-4], all[i] // out of the live ones
		all = append(all, startChild(t, dir, len(all)))
	}
	for _, c := range all[len(all)-4:] {
		c.await(t, 5)
		c.kill()
	}
	for _, c := range all {
		c.check(t, dir)
	}
}

// TestAttachKillsWithoutSync: the owner does not sync its own writes. An attached process does not know that, so its
// writes survive the owner's death.
func TestAttachKillsWithoutSync(t *testing.T) {
	if os.Getenv(killDir) != "" {
		writeUntilKilled(t)
		return
	}
	for range 5 {
		dir := t.TempDir()
		owner := startChild(t, dir, 0, killNoSync+"=1")
		owner.await(t, 1)
		guest := attached(t, embedded.Options{Dir: dir, StoreOptions: quick})
		for n := range 20 {
			put(t, guest, n)
		}
		owner.kill()
		again := attached(t, embedded.Options{Dir: dir})
		latest(t, again, 19)
	}
}

// writeUntilKilled is the other process.
func writeUntilKilled(t *testing.T) {
	store, err := embedded.New(t.Context(), embedded.Options{
		Dir: os.Getenv(killDir), Attach: true, TakeOver: true, NoSync: os.Getenv(killNoSync) != "",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), temps); err != nil {
		t.Fatal(err)
	}
	entity := tsdb.NewEntity(os.Getenv(killEntity))
	for n := 0; ; n++ {
		at := noon.Add(time.Duration(n) * time.Second)
		for err := temps.For(store, acme).Put(t.Context(), entity, at, float64(n)); err != nil; err = temps.For(store, acme).Put(t.Context(), entity, at, float64(n)) {
			fmt.Fprintln(os.Stderr, "the write is repeated:", err)
		}
		testkit.Acked(0, n+1)
	}
}

// killed is another process.
type killed struct {
	entity string
	cmd    *exec.Cmd
	acked  atomic.Int64 // points
	ended  sync.WaitGroup
}

func startChild(t *testing.T, dir string, id int, env ...string) *killed {
	t.Helper()
	c := &killed{entity: fmt.Sprint("process-", id), cmd: exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=120s")}
	c.cmd.Env = append(append(os.Environ(), killDir+"="+dir, killEntity+"="+c.entity), env...)
	var stderr strings.Builder
	c.cmd.Stderr = &stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.ended.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var g, n int64
			if _, err := fmt.Sscanf(lines.Text(), "acked %d %d .", &g, &n); err == nil {
				c.acked.Store(n)
			} else {
				t.Logf("%s: %s", c.entity, lines.Text())
			}
		}
		_ = c.cmd.Wait()
		t.Logf("%s has stored %d points\n%s", c.entity, c.acked.Load(), stderr.String())
	})
	t.Cleanup(c.kill)
	return c
}

// await waits until the process has stored n points.
func (c *killed) await(t *testing.T, n int64) {
	t.Helper()
	for until := time.Now().Add(time.Minute); c.acked.Load() < n; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s has stored %d points after a minute, want %d", c.entity, c.acked.Load(), n)
		}
	}
}

func (c *killed) kill() {
	_ = c.cmd.Process.Kill()
	c.ended.Wait()
}

// check reads what the process has stored.
func (c *killed) check(t *testing.T, dir string) {
	t.Helper()
	store := open(t, dir)
	defer store.Close()
	var values []float64 // the newest first
	for p, err := range temps.For(store, acme).Range(t.Context(), tsdb.NewEntity(c.entity), tsdb.Interval{}) {
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, p.Value)
	}
	for i, v := range values {
		if want := float64(len(values) - 1 - i); v != want {
			t.Fatalf("%s: a point is %v instead of %v", c.entity, v, want)
		}
	}
	if n := int64(len(values)); n < c.acked.Load() {
		t.Errorf("%s was told that %d points are stored, and %d are", c.entity, c.acked.Load(), n)
	}
}
