package spool

import (
	"errors"
	"os"
	"syscall"
)

// recoverFile reads a journal's file that is not open. If the journal was not closed, its last commit may be torn, in
// any of its pages: it was not acknowledged then, and the file goes back to the commit before, which is complete.
// closed is the last commit of a journal that was closed, or 0.
func recoverFile(path string, closed uint64) (*contents, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	metas := readMetas(file)
	if len(metas) == 0 {
		return nil, damaged("neither of the first two pages, the meta pages, is good")
	}
	last := commitOf(metas[0])
	if closed != 0 && last != closed {
		return nil, damaged("it was closed after commit %d, and its last one is %d", closed, last)
	}
	found, err := inspect(file, metas[0])
	if _, unread := errors.AsType[syscall.Errno](err); errors.Is(err, ErrDamaged) && !unread &&
		closed == 0 && len(metas) == 2 && commitOf(metas[1]) == last-1 {
		before, older := inspect(file, metas[1])
		if older != nil {
			return nil, err
		}
		if err := dropMeta(file, last); err != nil {
			return nil, err
		}
		before.dropped = last
		found, err = before, nil
	}
	if err == nil && closed == 0 && len(metas) == 1 {
		found.dropped = last + 1 // its meta page is torn
	}
	return found, err
}

// syncFound syncs a journal's file that is not open.
func syncFound(path string, o Options) error {
	if o.NoSync {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(o.syncFile(file), file.Close())
}
