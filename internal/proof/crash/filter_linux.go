//go:build linux && (amd64 || arm64)

package crash

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// The kernel holds back each call of a process that changes files, and asks this package what becomes of it: seccomp
// with a user notification (man 2 seccomp_unotify). The process that is watched and the one that watches are the same.

const (
	firstFD = 512        // descriptors of watched files are at least this, so that the filter tells them from others
	magic   = 0x7157a3c1 // the sixth argument of a call that the recorder makes itself; none of the calls uses it

	prSetNoNewPrivs  = 38
	setModeFilter    = 1
	flagTsync        = 1 << 0
	flagNewListener  = 1 << 3
	flagTsyncESRCH   = 1 << 4
	flagWaitKillable = 1 << 5 // Linux 5.19: a signal does not repeat a call that was received

	notifyReceive = 0xc0502100
	notifySend    = 0xc0182101

	retAllow  = 0x7fff0000
	retErrno  = 0x00050000
	retNotify = 0x7fc00000
)

// byPath are the calls that take paths, byFD those that take a descriptor as the first argument. Of those that Go
// programs do not make, the recorder knows only that they are made.
var (
	byPath = []uint32{syscall.SYS_OPENAT, syscall.SYS_RENAMEAT, sysRenameat2, syscall.SYS_UNLINKAT, syscall.SYS_MKDIRAT, syscall.SYS_LINKAT, syscall.SYS_TRUNCATE}
	byFD   = []uint32{
		syscall.SYS_WRITE, syscall.SYS_PWRITE64, syscall.SYS_WRITEV, syscall.SYS_PWRITEV, syscall.SYS_FTRUNCATE, syscall.SYS_FALLOCATE,
		syscall.SYS_FSYNC, syscall.SYS_FDATASYNC, syscall.SYS_SYNC_FILE_RANGE,
	}
)

// notification is struct seccomp_notif of the kernel, response struct seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type response struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// program returns the filter, for the classic BPF machine.
func program() []syscall.SockFilter {
	const load, jumpEqual, jumpAtLeast, ret = 0x20, 0x15, 0x35, 0x06
	argument := func(i uint32) uint32 { return 16 + 8*i } // its low half; both systems store that first
	n := uint8(len(byPath) + len(byFD))
	p := []syscall.SockFilter{{Code: load, K: 0}}
	// After the comparisons: allow, refuse, [fd: load, compare, allow], [magic: load, compare, notify, allow].
	for i, nr := range byPath {
		p = append(p, syscall.SockFilter{Code: jumpEqual, Jt: n - uint8(i) + 5, K: nr})
	}
	for i, nr := range byFD {
		p = append(p, syscall.SockFilter{Code: jumpEqual, Jt: n - uint8(len(byPath)+i) + 2, K: nr})
	}
	return append(p,
		syscall.SockFilter{Code: jumpEqual, Jt: 1, K: sysCopyFileRange},
		syscall.SockFilter{Code: ret, K: retAllow},
		syscall.SockFilter{Code: ret, K: retErrno | uint32(syscall.ENOSYS)}, // Go then reads and writes
		syscall.SockFilter{Code: load, K: argument(0)},
		syscall.SockFilter{Code: jumpAtLeast, Jt: 1, K: firstFD},
		syscall.SockFilter{Code: ret, K: retAllow},
		syscall.SockFilter{Code: load, K: argument(5)},
		syscall.SockFilter{Code: jumpEqual, Jt: 1, K: magic},
		syscall.SockFilter{Code: ret, K: retNotify},
		syscall.SockFilter{Code: ret, K: retAllow},
	)
}

// listen installs the filter in all threads and returns the descriptor of the notifications. The filter stays until the
// process ends.
func listen() (fd int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := program()
	prog := syscall.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return 0, fmt.Errorf("prctl: %w", errno)
	}
	const flags = flagTsync | flagNewListener | flagTsyncESRCH
	for _, more := range []uintptr{flagWaitKillable, 0} {
		r, _, errno := syscall.RawSyscall(sysSeccomp, setModeFilter, flags|more, uintptr(unsafe.Pointer(&prog)))
		if errno == 0 {
			return int(r), nil
		}
		err = fmt.Errorf("seccomp: %w", errno)
	}
	return 0, err
}
