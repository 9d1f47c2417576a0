// Package transfer moves a tenant's points out of a store and into one: Export writes them to a file, Import stores those of
// a file, of the same tenant or another, in the same store or another. Recover finds out where an interrupted Export can go on, and
// Check whether a file is whole.
//
// It goes by the store's catalogue, so it works on datasets that the program was not compiled with, and it never decodes a
// payload: what was stored comes back byte for byte.
//
// # The file
//
// A file is lines of JSON, each one object that ends with the member crc: a header, points, after at most 1,000 points or 4 MiB
// a sum over the block that they make, and an end. docs/format.md specifies it. A line that was cut, changed, doubled, moved
// or left out is refused with ErrDamaged and its number, and nothing of its block is stored. Without a key that finds damage, not
// forgery: whoever can write the file can make its sums anew. With ExportOptions.Key only those can who have the key; whether
// an older export was put in the place of a newer one shows in neither. A file is not encrypted. Compressing is the caller's:
// give Export a gzip or zstd writer.
//
// A file holds points and no rollups. Those that a store derives from points it computes of what is imported, whatever rollups
// the points had where they come from; sums of events that are not kept are in no file.
//
// An export is no snapshot. It reads one row after another; points that are written or deleted meanwhile may be in it or not.
// Points that have expired when they are read are not.
//
// The calls are an operator's: they take the tenant as an argument. Where the context carries another one
// (tenant.NewContext) they fail with tsdb.ErrTenantMismatch, and where it carries none, on a store with RequireTenant, with
// tsdb.ErrNoTenant. The store's limits do not count them.
package transfer

import (
	"fmt"

	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// The errors to tell apart with errors.Is. Those of package tsdb pass through as well.
var (
	// ErrInvalid: an argument that nothing can be made of; a *tsdb.InvalidError says which, and the limit.
	ErrInvalid = rowkey.ErrInvalid
	// ErrDamaged: a line is not what Export wrote, or the file ends before its last line. A *LineError says which line.
	ErrDamaged = errtype.New("transfer.ErrDamaged", "transfer: the file is damaged")
	// ErrVersion: the file is no export, or one in a version of the format that this program does not know.
	ErrVersion = errtype.New("transfer.ErrVersion", "transfer: not an export that this program can read")
	// ErrTenant: the file holds the points of another tenant than the one to import into.
	ErrTenant = errtype.New("transfer.ErrTenant", "transfer: the file is of another tenant")
	// ErrKey: the file's sums were made with another key than the one given, or with a key where none was given, or the other
	// way round.
	ErrKey = errtype.New("transfer.ErrKey", "transfer: not the key of the file")
	// ErrContinue: the checkpoint does not belong to this file.
	ErrContinue = errtype.New("transfer.ErrContinue", "transfer: the checkpoint is of another file")
)

// LineError is about one line of a file.
type LineError struct {
	// Line is its number, from 1.
	Line int64
	Err  error
}

// Error implements error. It shows no payload.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }
