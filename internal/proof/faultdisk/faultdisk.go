// Package faultdisk is an in-memory disk for tests of the engine. Tests can make syncs of its log slow, hang or fail,
// and lose what was not synced.
package faultdisk

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Disk is a file system in memory. Its methods are safe for concurrent use.
type Disk struct {
	vfs.FS
	mem     *vfs.MemFS
	gate    atomic.Pointer[chan struct{}]
	slow    atomic.Pointer[slow]
	failing atomic.Bool
}

// slow is the time of a sync, and the channel whose end ends all waits for it.
type slow struct {
	sync time.Duration
	over chan struct{}
}

// New returns an empty disk without faults.
func New() *Disk { return newDisk(vfs.NewCrashableMem()) }

func newDisk(mem *vfs.MemFS) *Disk {
	d := &Disk{mem: mem}
	d.FS = errorfs.Wrap(d.mem, errorfs.InjectorFunc(d.inject))
	return d
}

func (d *Disk) inject(op errorfs.Op) error {
	if !strings.HasSuffix(op.Path, ".log") || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		if gate := d.gate.Load(); gate != nil {
			<-*gate
		}
		d.slow.Load().wait()
	}
	if d.failing.Load() {
		return syscall.EMFILE
	}
	return nil
}

func (s *slow) wait() {
	if s == nil {
		return
	}
	timer := time.NewTimer(s.sync)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.over:
	}
}

// Hang makes syncs of the log wait until Release.
func (d *Disk) Hang() {
	gate := make(chan struct{})
	d.gate.Store(&gate)
}

// Release ends Hang.
func (d *Disk) Release() {
	if gate := d.gate.Swap(nil); gate != nil {
		close(*gate)
	}
}

// Slow makes each sync of the log take a time. 0 ends it, at once for the syncs under way too.
func (d *Disk) Slow(sync time.Duration) {
	var s *slow
	if sync > 0 {
		s = &slow{sync, make(chan struct{})}
	}
	if old := d.slow.Swap(s); old != nil {
		close(old.over)
	}
}

// Fail makes all changes of the log fail with EMFILE from now on. A sync that hangs fails once it is released.
func (d *Disk) Fail() { d.failing.Store(true) }

// Crash returns the disk as it is after a crash at this moment that loses everything unsynced.
func (d *Disk) Crash() vfs.FS { return d.mem.CrashClone(vfs.CrashCloneCfg{}) }

// Lose returns the disk as it is after a crash at this moment that loses part of what is unsynced. About the given
// percentage of that is kept.
func (d *Disk) Lose(kept int, rnd *rand.Rand) *Disk {
	return newDisk(d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: rnd}))
}
