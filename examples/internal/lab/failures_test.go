package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine"
)

const failing = `
duration: 1m
heavy: 1m
datasets: [{name: d, fields: [a], entities: 50, every: 1s, bytes: 10}]
queries: [{kind: latest_many, entities: 5, rate: 1/s}, {kind: latest, rate: 1/s}]
candidates: [{name: raw, key: a#time}, {name: sdk, key: tenant#a#~time}]
`

// TestPanicsRemoveTheFolder: a panic in a worker, in a request of a query, or in Progress reaches the caller of Run,
// and the folder is gone.
func TestPanicsRemoveTheFolder(t *testing.T) {
	for name, spoil := range map[string]func(*Plan, *RunOptions){
		"raw write": func(p *Plan, o *RunOptions) { p.datasets[0].bytes, o.Candidates = -1, []string{"raw"} },
		"sdk write": func(p *Plan, o *RunOptions) { p.datasets[0].bytes, o.Candidates = -1, []string{"sdk"} },
		"query":     func(p *Plan, _ *RunOptions) { p.queries[0].entities = -1 },
		"progress": func(_ *Plan, o *RunOptions) {
			o.Progress = func(Progress) { panic("makeslice of progress") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, o := planOf(t, failing), RunOptions{Scale: 1, Speed: 3600, Dir: t.TempDir()}
			spoil(p, &o)
			func() {
				defer func() {
					if text := fmt.Sprint(recover()); !strings.Contains(text, "makeslice") {
						t.Errorf("Run panics with %q, want the panic of the worker", text)
					}
				}()
				_, err := p.Run(t.Context(), o)
				t.Errorf("Run returns %v, want a panic", err)
			}()
			if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
				t.Errorf("the run left %v, %v", left, err)
			}
		})
	}
}

// childDir is set in a process that a test starts to kill it: it runs the lab in that folder until then.
const childDir = "TIDEMARK_LAB_CHILD"

func TestChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("is the process that TestKilledRun kills")
	}
	_, err := planOf(t, failing).Run(t.Context(), RunOptions{Scale: 1, Speed: 1, Dir: dir, Progress: func(p Progress) {
		if p.Part == "load" {
			fmt.Println("running")
		}
	}})
	t.Fatal(err)
}

// TestKilledRun: a run removes the folder that a killed one left, and says so. It leaves the folder of a run that is
// under way, and folders that are none of the lab's.
func TestKilledRun(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, scratchName+"notes")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	start := func() *exec.Cmd {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
		c.Env = append(os.Environ(), childDir+"="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() == "running" {
				return c
			}
		}
		t.Fatal("the child does not run", c.Wait())
		return nil
	}
	kill := func(c *exec.Cmd) {
		_ = c.Process.Kill()
		_ = c.Wait() // says that it was killed
	}
	folders := func() (names []string) {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			names = append(names, filepath.Join(dir, f.Name()))
		}
		return slices.DeleteFunc(names, func(name string) bool { return name == other })
	}
	kill(start())
	killed := folders()
	if len(killed) != 1 {
		t.Fatalf("the killed run left %v, want a folder", killed)
	}
	running := start() // removes the folder of the one before
	defer kill(running)
	busy := folders()
	if len(busy) != 1 || busy[0] == killed[0] {
		t.Errorf("there are %v, want only that of the second run", busy)
	}
	report, err := planOf(t, failing).Run(t.Context(), RunOptions{Candidates: []string{"raw"}, Scale: 1, Speed: 3600, Dir: dir})
	if err != nil || len(report.Leftovers) != 0 || !slices.Equal(folders(), busy) {
		t.Errorf("the folder of a run that is under way: %v, %v, %v; want that it stays", err, report.Leftovers, folders())
	}
	kill(running)
	report, err = planOf(t, failing).Run(t.Context(), RunOptions{Candidates: []string{"raw"}, Scale: 1, Speed: 3600, Dir: dir})
	if err != nil || len(report.Leftovers) != 1 || !strings.Contains(report.Leftovers[0], "removed the folder "+busy[0]) || len(folders()) != 0 {
		t.Errorf("after the run was killed: %v, %q, %v; want that its folder is removed", err, report.Leftovers, folders())
	}
	if err := engine.Remove(other); !errors.Is(err, engine.ErrForeign) {
		t.Errorf("a folder without a store: %v, want ErrForeign", err)
	}
}

// broken is a driver whose storage fails after some points.
type broken struct {
	heaviest
	after int
}

func (d *broken) write(ctx context.Context, ops []op) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.after -= len(ops); d.after < 0 {
		return len(ops), fmt.Errorf("write: %w", status.Error(codes.DataLoss, "no space left on device"))
	}
	return 0, nil
}

// TestFullDisk: a run ends when its storage fails, because nothing succeeds after that. It counts only points that were
// stored, and does not report that it was done.
func TestFullDisk(t *testing.T) {
	p := planOf(t, failing)
	most := 0.0
	r := &runner{
		o: RunOptions{Concurrency: 1, Speed: 3600, Progress: func(p Progress) { most = max(most, p.Done) }}, c: p.candidates[0],
		l: p.scaled(1), driver: &broken{after: 1600}, queries: make([]queryMeter, 2),
	}
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	r.run(ctx)
	if r.heavy.points != 1500 || r.load.points != 0 || r.broken == nil || most >= 1 {
		t.Errorf("it stored %d and %d points, done %g, %v; want 1500 of the heavy load and the error", r.heavy.points, r.load.points, most, r.broken)
	}
	if !strings.Contains(fmt.Sprint(r.broken), "the storage failed, so the run ended: write: ") {
		t.Errorf("the error is %v", r.broken)
	}
}

// TestFailedRowsAreNotCounted: the rows and bytes of a report are those that were stored.
func TestFailedRowsAreNotCounted(t *testing.T) {
	m := new(meter)
	b, err := openEngine(t.Context(), t.TempDir(), m.dialOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if err := b.admin.CreateTableFromConf(t.Context(), &bigtable.TableConf{TableID: "t", Families: map[string]bigtable.GCPolicy{rawFamily: bigtable.NoGcPolicy()}}); err != nil {
		t.Fatal(err)
	}
	muts := make([]*bigtable.Mutation, 3)
	for i, family := range []string{rawFamily, "none", rawFamily} {
		muts[i] = bigtable.NewMutation()
		muts[i].Set(family, rawColumn, 1000, []byte("value"))
	}
	errs, err := b.client.OpenTable("t").ApplyBulk(t.Context(), []string{"key-1", "key-2", "key-3"}, muts)
	if err != nil || len(errs) != 3 || errs[1] == nil {
		t.Fatalf("got %v, %v, want that the second row is refused", errs, err)
	}
	if rows, bytes := m.rowsWritten.Load(), m.bytes.Load(); rows != 2 || bytes != 2*int64(len("key-1")+len(rawColumn)+len("value")) {
		t.Errorf("%d rows and %d bytes are counted, want those of 2 rows", rows, bytes)
	}
}

// TestTableNames: the name of a scratch table says until when it may be in use.
func TestTableNames(t *testing.T) {
	now := time.Date(2026, 11, 23, 23, 50, 0, 0, time.FixedZone("", 3600))
	name := scratchTable(now, 10*time.Minute)
	if !strings.HasPrefix(name, "tidemark-lab-20261123t230200-") || len(name) > 50 || name == scratchTable(now, 10*time.Minute) {
		t.Errorf("the name is %s, of %d bytes; want one of its own, of at most 50, with the time in UTC", name, len(name))
	}
}
