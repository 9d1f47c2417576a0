// Package transfer moves a tenant's points between stores: [Export] writes them to a file, [Import] stores those of a
// file, for the same tenant or another. No call decodes a payload.
//
// A file is lines of JSON, in blocks of at most 1,000 points or 4 MiB with a sum each (docs/format.md). If a line was
// cut, changed, repeated, moved or left out, Import fails with [ErrDamaged]. Sums detect forgery only with
// ExportOptions.Key; nothing detects that an older export replaced a newer one. A file is neither encrypted nor
// compressed; pass a gzip or zstd writer to Export.
//
// A file has no rollups: the importing store computes those of points; those of events cannot be exported. An export is
// not a snapshot: points that are written or deleted meanwhile may be in it or not. Expired points are not.
//
// If the context carries another tenant, calls fail with tsdb.ErrTenantMismatch; if it carries none and the store has
// RequireTenant, with tsdb.ErrNoTenant. The store's limits do not count them.
package transfer

import (
	"fmt"

	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Errors for errors.Is. The calls also return errors of package tsdb.
var (
	// ErrDamaged: a line is not what Export wrote, or the file ends before its last line. A *LineError says which line.
	ErrDamaged = errtype.New("transfer.ErrDamaged", "transfer: the file is damaged")
	// ErrVersion: the file is not an export, or has a version of the format that this program does not know.
	ErrVersion = errtype.New("transfer.ErrVersion", "transfer: not an export that this program can read")
	// ErrTenant: the file has the points of another tenant than the one given.
	ErrTenant = errtype.New("transfer.ErrTenant", "transfer: the file is of another tenant")
	// ErrKey: the file was written with another key than the one given, with a key if none was given, or without one.
	ErrKey = errtype.New("transfer.ErrKey", "transfer: not the key of the file")
)

// LineError is an error in one line of a file.
type LineError struct {
	// Line is the line's number, from 1.
	Line int64
	Err  error
}

// Error implements error. It shows no payload.
func (e *LineError) Error() string {
	e = invalid.OrZero(e)
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return invalid.OrZero(e).Err }
