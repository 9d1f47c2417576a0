package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// The environment of a process that runs a workload.
const (
	envName  = "TIDEMARK_CRASH_WORKLOAD"
	envDir   = "TIDEMARK_CRASH_DIR"
	envFault = "TIDEMARK_CRASH_FAULT"
)

// The exit codes of such a process.
const (
	exitFailed      = 3 // the workload failed
	exitLost        = 4 // it is not known what it did
	exitUnsupported = 5
)

// Process is what a workload knows of the process that it runs in.
type Process struct {
	Dir   string // the folder of its files
	Fault Fault

	r *recorder
}

// Note records a text of the workload between its operations on files.
func (p Process) Note(format string, args ...any) { p.r.note(fmt.Sprintf(format, args...)) }

// Workloads runs one of the workloads if this process was started by Run, and then ends it. Call it first in TestMain,
// after the flags are parsed.
func Workloads(all map[string]func(Process) error) {
	name := os.Getenv(envName)
	if name == "" {
		return
	}
	p := Process{Dir: os.Getenv(envDir)}
	var errno int
	_, err := fmt.Sscan(os.Getenv(envFault), &p.Fault.At, &errno, &p.Fault.Forever)
	p.Fault.Errno = syscall.Errno(errno)
	if err != nil {
		stop("%s: %v", envFault, err)
	}
	if p.r, err = record(p.Dir, os.NewFile(3, "operations"), p.Fault); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(exitUnsupported)
	}
	if err := all[name](p); err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(exitFailed)
	}
	os.Exit(0)
}

// stop ends the process: what it did is not known any more.
func stop(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "crash: "+format+"\n", args...)
	os.Exit(exitLost)
}

// mostTime is how long a workload may take. One that hangs, because of a fault, is killed.
const mostTime = 20 * time.Second

// Run runs a workload in another process, on a folder that begins with the files of a disk, and returns what it did to
// them. The process has the flags of this one and some more. A workload that has a fault may fail, and hang. The test
// is skipped where processes cannot be recorded.
func Run(t testing.TB, workload string, disk *Disk, fault Fault, flags ...string) (ops []Op) {
	t.Helper()
	InFolder(t, func(log string) {
		InFolder(t, func(dir string) {
			if err := disk.Write(dir); err != nil {
				t.Error(err)
				return
			}
			log = filepath.Join(log, "operations")
			if out, err := run(t.Context(), workload, dir, log, fault, flags); errors.Is(err, errUnsupported) {
				t.Skip(out)
			} else if err != nil {
				t.Errorf("the workload %s with %v: %v\n%s", workload, fault, err, out)
				return
			}
			var err error
			if ops, err = Load(log); err != nil {
				t.Error(err)
			}
		})
	})
	return ops
}

var errUnsupported = errors.New("processes cannot be recorded here")

func run(ctx context.Context, workload, dir, log string, fault Fault, flags []string) (out string, err error) {
	file, err := os.Create(log)
	if err != nil {
		return "", err
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], slices.Concat(os.Args[1:], flags)...)
	cmd.Env = append(os.Environ(), envName+"="+workload, envDir+"="+dir,
		fmt.Sprintf("%s=%d %d %v", envFault, fault.At, int(fault.Errno), fault.Forever))
	cmd.ExtraFiles = []*os.File{file}
	text, err := cmd.CombinedOutput()
	exited, _ := errors.AsType[*exec.ExitError](err)
	switch {
	case exited != nil && exited.ExitCode() == exitUnsupported:
		err = errUnsupported
	case exited != nil && fault.Errno != 0 && (exited.ExitCode() == exitFailed || ctx.Err() != nil):
		err = nil // the fault's work
	}
	return string(text), err
}

// InFolder calls f with a new folder, in memory where the system has one, and removes it. Its name has no links.
func InFolder(t testing.TB, f func(dir string)) {
	t.Helper()
	memory := "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		memory = ""
	}
	dir, err := os.MkdirTemp(memory, "crash")
	if err == nil {
		defer os.RemoveAll(dir)
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Error(err)
		return
	}
	f(dir)
}
