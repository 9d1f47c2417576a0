package crash

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"
)

// Kind is what an operation does.
type Kind uint8

// The kinds of operations.
const (
	Note Kind = iota // a text of the workload, no operation
	Open             // of a file or a folder; it may create or empty the file
	Write
	Resize
	Sync
	Mkdir
	Rename
	Remove
)

var kindNames = [...]string{"note", "open", "write", "resize", "sync", "mkdir", "rename", "remove"}

func (k Kind) String() string { return kindNames[k] }

// Op is an operation on files, or a note. Paths are relative to the folder of the workload.
type Op struct {
	Kind     Kind
	Text     string // of a note
	Path, To string
	FD       int // of an Open, and of what is done to the file
	Creates  bool
	Empties  bool
	Offset   int64 // of a Write; for a Resize the size
	Keeps    bool  // a Resize only makes the file longer
	Data     []byte
	Err      syscall.Errno // 0 for success
}

// Counts reports whether the operation changes files, or what of them is durable. Operations are counted from 1.
func (o Op) Counts() bool {
	return o.Kind != Note && (o.Kind != Open || o.Creates || o.Empties)
}

// String describes the operation without its data.
func (o Op) String() string {
	switch o.Kind {
	case Note:
		return o.Text
	case Open:
		return fmt.Sprintf("open %s as %d (creates %v, empties %v)%s", o.Path, o.FD, o.Creates, o.Empties, o.failed())
	case Write:
		return fmt.Sprintf("write %d bytes to %d at %d%s", len(o.Data), o.FD, o.Offset, o.failed())
	case Resize:
		return fmt.Sprintf("resize %d to %d%s", o.FD, o.Offset, o.failed())
	case Sync:
		return fmt.Sprintf("sync %d%s", o.FD, o.failed())
	case Rename:
		return fmt.Sprintf("%s %s to %s%s", o.Kind, o.Path, o.To, o.failed())
	}
	return fmt.Sprintf("%s %s%s", o.Kind, path.Clean(o.Path), o.failed())
}

func (o Op) failed() string {
	if o.Err == 0 {
		return ""
	}
	return ": " + o.Err.Error()
}

// Fault is a failure of operations. The zero Fault is none.
type Fault struct {
	// At is the number of the first operation that may fail. An Errno that does not fit it fails a later one.
	At    int
	Errno syscall.Errno // ENOSPC, EIO or EMFILE
	// Forever fails all that follow, too.
	Forever bool
}

// fits reports whether an operation can fail so.
func (f Fault) fits(o Op) bool {
	switch f.Errno {
	case syscall.EMFILE:
		return o.Kind == Open
	case syscall.ENOSPC:
		return o.Kind == Write || o.Kind == Resize && o.Keeps || o.Kind == Mkdir || o.Kind == Rename || o.Creates
	}
	return o.Counts()
}

// Save writes operations to a file.
func Save(name string, ops []Op) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	enc := gob.NewEncoder(file)
	for _, o := range ops {
		err = errors.Join(err, enc.Encode(o))
	}
	return errors.Join(err, file.Close())
}

// Load reads the operations of a file that Save, or a process, has written. The end may be missing, if the process was
// killed.
func Load(name string) (ops []Op, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for dec := gob.NewDecoder(file); ; {
		var o Op
		switch err := dec.Decode(&o); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return ops, nil
		case err != nil:
			return nil, err
		}
		ops = append(ops, o)
	}
}
