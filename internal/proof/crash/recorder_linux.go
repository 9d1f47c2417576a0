//go:build linux && (amd64 || arm64)

package crash

import (
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// recorder makes each call that changes files in a folder itself, one after the other, and records it.
type recorder struct {
	root  string
	fault Fault

	mu    sync.Mutex
	out   *gob.Encoder
	count int  // of operations
	half  bool // the disk took half of a write, and is to refuse the rest
	spent bool // the fault has happened once
}

// record begins to record what this process does in a folder. It does not end.
func record(root string, to *os.File, fault Fault) (*recorder, error) {
	r := &recorder{root: root, out: gob.NewEncoder(to), fault: fault}
	fd, err := listen()
	if err != nil {
		return nil, err
	}
	go func() {
		runtime.LockOSThread()
		for r.one(fd) {
		}
	}()
	return r, nil
}

// note records a text, after all operations that have ended.
func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(Op{Kind: Note, Text: text})
}

func (r *recorder) write(o Op) {
	if err := r.out.Encode(o); err != nil {
		stop("an operation cannot be recorded: %v", err)
	}
}

// one answers one call.
func (r *recorder) one(fd int) bool {
	var n notification
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), notifyReceive, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return errno == syscall.EINTR || errno == syscall.ENOENT
	}
	val, errno := r.answer(&n)
	resp := response{id: n.id, val: int64(val), errno: -int32(errno)}
	_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), notifySend, uintptr(unsafe.Pointer(&resp)))
	return errno == 0 || errno == syscall.ENOENT
}

// answer makes a call, or half of it, or none.
func (r *recorder) answer(n *notification) (val uintptr, errno syscall.Errno) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, watched := r.describe(n)
	if !watched {
		return raw(n)
	}
	counts := o.Counts()
	if counts {
		r.count++
	}
	if r.hits(o) {
		if o.Kind != Write || r.fault.Errno != syscall.ENOSPC || r.half || len(o.Data) < 2 {
			r.half, r.spent, o.Err = false, true, r.fault.Errno
			if counts {
				r.write(o)
			}
			return 0, o.Err
		}
		r.half = true // a full disk takes what it has space for, and then nothing
		o.Data = o.Data[:len(o.Data)/2]
		n.args[2] = uint64(len(o.Data))
	}
	switch o.Kind {
	case Open:
		o.FD, o.Err = openHigh(n)
		val = uintptr(o.FD)
	case Sync: // The model of the disk keeps what was synced; this machine need not.
	default:
		val, o.Err = raw(n)
	}
	if o.Err != 0 {
		val = 0
	}
	r.write(o)
	return val, o.Err
}

// hits reports whether the fault happens to an operation.
func (r *recorder) hits(o Op) bool {
	return r.fault.Errno != 0 && r.count >= r.fault.At && (r.fault.Forever || !r.spent) && r.fault.fits(o)
}

// openHigh opens a file and gives it a descriptor that the filter knows.
func openHigh(n *notification) (fd int, errno syscall.Errno) {
	low, errno := raw(n)
	if errno != 0 {
		return 0, errno
	}
	high, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, low, syscall.F_DUPFD_CLOEXEC, firstFD)
	_ = syscall.Close(int(low))
	return int(high), errno
}

// raw makes a call past the filter.
func raw(n *notification) (val uintptr, errno syscall.Errno) {
	a := n.args
	val, _, errno = syscall.RawSyscall6(uintptr(n.nr), uintptr(a[0]), uintptr(a[1]), uintptr(a[2]), uintptr(a[3]), uintptr(a[4]), magic)
	return val, errno
}

// describe returns what a call does, and whether it changes something in the folder or opens a file there.
func (r *recorder) describe(n *notification) (o Op, watched bool) {
	a := n.args
	switch n.nr {
	case syscall.SYS_OPENAT:
		name, in := r.name(a[0], a[1])
		o = Op{Kind: Open, Path: name, Empties: a[2]&syscall.O_TRUNC != 0}
		if in && a[2]&syscall.O_CREAT != 0 {
			o.Creates = syscall.Access(filepath.Join(r.root, name), 0) != nil
		}
		return o, in
	case syscall.SYS_MKDIRAT:
		name, in := r.name(a[0], a[1])
		return Op{Kind: Mkdir, Path: name}, in
	case syscall.SYS_UNLINKAT:
		name, in := r.name(a[0], a[1])
		return Op{Kind: Remove, Path: name}, in
	case syscall.SYS_RENAMEAT, sysRenameat2:
		from, in := r.name(a[0], a[1])
		to, into := r.name(a[2], a[3])
		if in != into {
			stop("%s is renamed to %s, across the border of the folder", from, to)
		}
		return Op{Kind: Rename, Path: from, To: to}, in
	case syscall.SYS_WRITE:
		at, _ := syscall.Seek(int(a[0]), 0, io.SeekCurrent)
		return Op{Kind: Write, FD: int(a[0]), Data: bytesAt(a[1], a[2]), Offset: at}, true
	case syscall.SYS_PWRITE64:
		return Op{Kind: Write, FD: int(a[0]), Data: bytesAt(a[1], a[2]), Offset: int64(a[3])}, true
	case syscall.SYS_FTRUNCATE:
		return Op{Kind: Resize, FD: int(a[0]), Offset: int64(a[1])}, true
	case syscall.SYS_FALLOCATE:
		const keepSize = 1
		return Op{Kind: Resize, FD: int(a[0]), Offset: int64(a[2] + a[3]), Keeps: true}, a[1]&keepSize == 0
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		return Op{Kind: Sync, FD: int(a[0])}, true
	case syscall.SYS_SYNC_FILE_RANGE: // begins to write, and makes nothing durable
		return o, false
	}
	stop("the recorder does not know call %d", n.nr)
	return o, false
}

// name returns a path relative to the folder, and whether it is in it.
func (r *recorder) name(dir, path uint64) (name string, in bool) {
	p := *(**byte)(unsafe.Pointer(&path))
	for n := 0; ; n++ {
		if text := unsafe.Slice(p, n+1); text[n] == 0 {
			name = string(text[:n])
			break
		}
	}
	if !filepath.IsAbs(name) {
		const here = -100 // AT_FDCWD
		base, err := os.Getwd()
		if fd := int(int32(dir)); fd != here {
			base, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		}
		if err != nil {
			stop("the folder of %s is not known: %v", name, err)
		}
		name = filepath.Join(base, name)
	}
	name, in = strings.CutPrefix(filepath.Clean(name)+"/", r.root+"/")
	return strings.TrimSuffix(name, "/"), in
}

// bytesAt returns memory of the caller, which waits.
func bytesAt(at, n uint64) []byte { return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n) }
