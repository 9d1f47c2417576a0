// Package faultdisk is an in-memory disk for tests of the engine. Tests can make syncs of its log hang or fail.
package faultdisk

import (
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Disk is a file system in memory. Its methods are safe for concurrent use.
type Disk struct {
	vfs.FS
	mem     *vfs.MemFS
	gate    atomic.Pointer[chan struct{}]
	failing atomic.Bool
}

// New returns an empty disk without faults.
func New() *Disk {
	d := &Disk{mem: vfs.NewCrashableMem()}
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
	}
	if d.failing.Load() {
		return syscall.EMFILE
	}
	return nil
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

// Fail makes all changes of the log fail with EMFILE from now on. A sync that hangs fails once it is released.
func (d *Disk) Fail() { d.failing.Store(true) }

// Crash returns the disk as it is after a crash at this moment that loses everything unsynced.
func (d *Disk) Crash() vfs.FS { return d.mem.CrashClone(vfs.CrashCloneCfg{}) }
