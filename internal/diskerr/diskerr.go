// Package diskerr holds the errors of folders on disk that programs tell apart. It stands alone, so that a program
// which links no storage engine can name them.
package diskerr

import "errors"

var (
	// ErrLocked says that another process, or another engine of this one, has the folder open.
	ErrLocked = errors.New("the folder is in use by another store or process")
	// ErrDamaged says that what is on disk is not what was written.
	ErrDamaged = errors.New("the data on disk is damaged")
	// ErrStorage says that the file system refused an operation.
	ErrStorage = errors.New("engine: storage failed")
)
