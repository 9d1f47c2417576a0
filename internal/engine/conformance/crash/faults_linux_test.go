package crash

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

var faultRounds = flag.Int("crash.faults", 4/testkit.Stride(2), "how often a writing process is killed whose disk is full, that has no files left, or whose logs are torn")

// smallDisk is the environment variable that tells the writing process that it may fill its disk.
const smallDisk = "TIDEMARK_CRASH_SMALL"

// The folders and files below a faulty process's root.
const (
	storePart   = "disk/store"
	journalPart = "disk/journal"
	fillerPart  = "disk/filler"
	syncedPart  = "synced" // stored on another disk
)

// recorder is a file system that records how much of each log is synced, in a place that survives the kill of the
// process. Each sync takes a while, so that a kill hits writes that wait for one.
type recorder struct {
	vfs.FS
	dir string
}

func (r recorder) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := r.FS.Create(name, category)
	if base := filepath.Base(name); err == nil && (strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-")) {
		note, err := os.Create(filepath.Join(r.dir, base))
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return &recordedFile{File: file, note: note}, nil
	}
	return file, err
}

type recordedFile struct {
	vfs.File
	note    *os.File
	written int64
}

func (f *recordedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

func (f *recordedFile) Sync() error     { return f.sync(f.File.Sync) }
func (f *recordedFile) SyncData() error { return f.sync(f.File.SyncData) }
func (f *recordedFile) Close() error    { return errors.Join(f.File.Close(), f.note.Close()) }

func (f *recordedFile) sync(op func() error) error {
	time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
	if err := op(); err != nil {
		return err
	}
	_, err := f.note.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(f.written)), 0)
	return err
}

func faultyOptions(root string) engine.Options {
	o := options(filepath.Join(root, storePart))
	o.FS = recorder{vfs.Default, filepath.Join(root, syncedPart)}
	return o
}

// faults are the faults of a writing process.
type faults struct {
	full, files bool
	after       time.Duration // since its start
	kill        time.Duration // since its start
}

// drawFaults draws the same faults in the process and in the test. It fills only small disks.
func drawFaults(seed uint64, small bool) faults {
	r := rand.New(rand.NewPCG(seed, 11))
	f := faults{full: r.IntN(2) == 0, files: r.IntN(3) == 0, kill: time.Duration(r.IntN(700)) * time.Millisecond}
	if r.IntN(4) > 0 {
		f.after = time.Duration(50+r.IntN(300)) * time.Millisecond
	} else { // before the process opens the store, which may take a while
		f.kill += time.Second
	}
	f.full = f.full && small
	return f
}

// strike makes the faults happen.
func (f faults) strike(root string) {
	if f.files {
		open, _ := os.ReadDir("/proc/self/fd")
		limit := syscall.Rlimit{Cur: uint64(len(open) + rand.IntN(12)), Max: 1 << 16}
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	if !f.full {
		return
	}
	file, err := os.Create(filepath.Join(root, fillerPart))
	if err != nil {
		return
	}
	defer file.Close()
	for size := 1 << 20; size > 0; size /= 16 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}
}

func init() { faultyChild = writeUntilKilled }

// writeUntilKilled writes until the process is killed, also after its disk has failed.
func writeUntilKilled(root string) error {
	seed, err := strconv.ParseUint(os.Getenv(faultsSeed), 10, 64)
	if err != nil {
		return err
	}
	f := drawFaults(seed, os.Getenv(smallDisk) != "")
	fmt.Println("begun")
	if f.after == 0 {
		f.strike(root)
	} else {
		time.AfterFunc(f.after, func() { f.strike(root) })
	}
	eng, err := engine.Open(faultyOptions(root))
	if err != nil && !errors.Is(err, engine.ErrStorage) {
		return err
	}
	if err != nil {
		fmt.Println("refused")
		time.Sleep(time.Hour)
	}
	writeWithFaults(root, eng, seed, func(format string, args ...any) {
		fmt.Fprintf(os.Stdout, format+"\n", args...) // one write for each line: a pipe transfers it completely or not at all
	})
	time.Sleep(time.Hour)
	return nil
}

// TestFaults kills a writing process again and again, while its disk is full, while it may open no more files, and so
// that the ends of its logs that were not synced are torn at sectors. No write that it answered is lost: rows, sums,
// conditional inserts, points that win as the first ones or are merged, events of a stream, and points in a journal.
// The long run:
//
//	go test ./internal/engine/conformance/crash -run Faults -crash.faults 100 -timeout 1h
func TestFaults(t *testing.T) {
	if testing.Short() && *faultRounds == 4 {
		*faultRounds = 2
	}
	r := rand.New(rand.NewPCG(*seed, 12))
	count := map[string]int{}
	const many = 10 // rounds for one store: each round reads back more
	for n := 0; n < *faultRounds; n += many {
		faultyRounds(t, n+1, min(n+many, *faultRounds), r, count)
	}
	t.Logf("%d rounds: %v; 0 acknowledged writes lost", *faultRounds, count)
}

// faultyRounds runs the rounds of one store.
func faultyRounds(t *testing.T, from, to int, r *rand.Rand, count map[string]int) {
	t.Helper()
	root := t.TempDir()
	disk := mkdir(t, root, "disk")
	small := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=96m") == nil
	if small {
		defer unmount(t, disk)
	} else {
		t.Log("cannot mount a small disk, so the disk is never full")
	}
	mkdir(t, root, syncedPart)
	rows, points := newLedger(), newPointLedger()
	for n := from; n <= to; n++ {
		f := drawFaults(*seed<<32+uint64(n), small)
		faultyRound(t, root, *seed<<32+uint64(n), small, f, rows, points, count)
		tear(t, root, r, count)
		verifyFaulty(t, root, rows, points, f)
		if t.Failed() {
			t.Fatalf("failed in round %d of -crash.seed=%d, with %+v", n, *seed, f)
		}
	}
	count["answered writes"] += rows.lines
	for kind, points := range points.acked {
		count["answered "+kind] += len(points)
	}
}

func unmount(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Unmount(dir, 0); err != nil {
		t.Error(err)
	}
}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// faultyRound runs a writing process, kills it, and records the writes that it reported as acknowledged.
func faultyRound(t *testing.T, root string, seed uint64, small bool, f faults, rows *ledger, points *pointLedger, count map[string]int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childDir+"="+root, fmt.Sprintf("%s=%d", faultsSeed, seed))
	if small {
		cmd.Env = append(cmd.Env, smallDisk+"=1")
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "begun":
			timer.Reset(f.kill)
		case line == "refused":
			count["openings refused"]++
		case strings.HasPrefix(line, "point "):
			err = points.enter(line)
		default:
			err = rows.enter(line)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the writing process ended before it was killed: %v\n%s", err, stderr.String())
	}
	if err := os.Remove(filepath.Join(root, fillerPart)); err == nil {
		count["disks filled"]++
	}
	if f.files {
		count["times out of files"]++
	}
}

// tear changes the logs as a machine that fails may leave them: of the unsynced part any sectors are missing, or the
// file ends somewhere in it.
func tear(t *testing.T, root string, r *rand.Rand, count map[string]int) {
	t.Helper()
	const sector = 512
	entries, err := os.ReadDir(filepath.Join(root, storePart))
	if errors.Is(err, os.ErrNotExist) {
		return // the process was killed, or failed, before it created the folder
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".log") && !strings.HasPrefix(entry.Name(), "MANIFEST-") {
			continue
		}
		name := filepath.Join(root, storePart, entry.Name())
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		synced := 0
		if note, err := os.ReadFile(filepath.Join(root, syncedPart, entry.Name())); err == nil && len(note) == 8 {
			synced = int(binary.BigEndian.Uint64(note))
		}
		if synced >= len(b) {
			continue
		}
		for at := synced / sector * sector; at < len(b); at += sector {
			if r.IntN(2) == 0 {
				clear(b[max(at, synced):min(at+sector, len(b))])
				count["sectors lost"]++
			}
		}
		if r.IntN(3) == 0 {
			b = b[:synced+r.IntN(len(b)-synced)]
		}
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
		count["logs torn"]++
	}
}
