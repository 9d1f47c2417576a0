package tsdb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// The errors to tell apart with errors.Is. Those of the packages below pass through as well: tenant.ErrInvalid,
// codec.ErrCorrupt, codec.ErrEncode, gc.ErrInvalid, gc.ErrVersions, and the context's own.
var (
	// ErrInvalid: an argument that nothing can be made of; an InvalidError says which, and the limit. Nothing was sent.
	ErrInvalid = rowkey.ErrInvalid
	// ErrNotFound: no such point, or it is expired.
	ErrNotFound = errors.New("tsdb: not found")
	// ErrExists: a first-wins schema has another value at that entity and time already.
	ErrExists = dataset.ErrExists
	// ErrExpired: the point's age is over its retention, so it would be invisible at once.
	ErrExpired = dataset.ErrExpired
	// ErrLate: the point is older than the schema accepts.
	ErrLate = dataset.ErrLate
	// ErrTooFarAhead: the point lies further in the future than the schema accepts.
	ErrTooFarAhead = dataset.ErrTooFarAhead
	// ErrRejected is matched by the error of every write that is certainly not stored.
	ErrRejected = errors.New("tsdb: write rejected")
	// ErrUnknown is matched by the error of every write of which it is not known whether it is stored.
	ErrUnknown = errors.New("tsdb: write outcome unknown")
	// ErrCursor: a page was asked for with a cursor that is none, or belongs to another tenant, dataset, query or key. An
	// InvalidError says which, as far as that can be known. Nothing was sent; ask for the first page again.
	ErrCursor = cursor.ErrCursor
	// ErrTenantMismatch: the context carries another tenant than the repository is bound to.
	ErrTenantMismatch = tenancy.ErrTenantMismatch
	// ErrNoTenant: the context carries no tenant, where one was to be taken from it or the store requires one.
	ErrNoTenant = tenancy.ErrNoTenant
	// ErrForeignRow: the service returned a row outside of the range that was asked for. It was not decoded.
	ErrForeignRow = bt.ErrForeignRow
	// ErrNoTable: the table, or the column family of the schema's class, does not exist. Store.Ensure creates them.
	ErrNoTable = tenancy.ErrNoTable
	// ErrNoView: the store works through authorized views, and the tenant has none. Store.EnsureView makes it.
	ErrNoView = tenancy.ErrNoView
	// ErrSchemaConflict is matched by a ConflictError.
	ErrSchemaConflict = errors.New("tsdb: the table was written by another schema")
	// ErrUnguardedClient: a write failed that did not pass the store's interceptors, as the client was made without them
	// (see ClientConfig and DialOptions), so its outcome cannot be known. Additions of package rollup that are made once are
	// refused with it before they are sent: by itself, such a client would send one again whose answer was lost.
	ErrUnguardedClient = bt.ErrUnguarded
	// ErrNoAdmin: Ensure was called on a store that was given no admin client.
	ErrNoAdmin = errors.New("tsdb: the store has no admin client")
	// ErrNoConditionalAggregates: the service does not take additions to aggregate cells in conditional writes, or does not
	// add them up, so no rollup can be right that is derived, or adds up events by stream or message.
	ErrNoConditionalAggregates = ensure.ErrNoConditionalAggregates
	// ErrErased: the tenant, or the entity that was to be written, is erased or being erased (package tenants).
	ErrErased = tenancy.ErrErased
	// ErrDatasetDeleted: the dataset is deleted or being deleted (package tenants), and its name was not released since. It
	// matches ErrErased, too.
	ErrDatasetDeleted error = tenancy.ErrDatasetDeleted
	// ErrRemoving: column families of a retention class that the dataset uses are being removed (package tenants). Ensure and Verify
	// succeed once the removal has ended, or is given up with tenants.Release.
	ErrRemoving = tenancy.ErrRemoving
	// ErrNoMerge: a merging schema has at that entity and time what it cannot merge into: a payload in an older format, one
	// that is over the limit, or one that is corrupt (then the error matches codec.ErrCorrupt too). It was left as it is.
	ErrNoMerge = points.ErrNoMerge
	// ErrClock: the store's clock is ahead of the time that has passed, or of the service's clock, by more than 10 seconds. What
	// deletes by age does nothing then: workers of rollups, and erasures that end another mark. They go on once the clock is
	// right, or has kept step for 10 minutes if the service's time is not known.
	ErrClock = clock.ErrAhead
	// ErrClosed: the store is closed.
	ErrClosed = bt.ErrClosed
)

// InvalidError says which argument was refused and why. Its fields Field, Value and Limit are strings: the name by which
// the caller knows the argument, its value, and what would have been accepted. Its field Err is the sentinel that it
// unwraps to: ErrInvalid, ErrLate, ErrTooFarAhead, ErrExpired, ErrCursor, tenant.ErrInvalid.
type InvalidError = invalid.Error

// ConflictError says how the table differs from what the schemas declare. It matches ErrSchemaConflict. Whatever was
// asked of the store, nothing was changed. Where it is policies that differ, package retention shows what changing them would
// do, and changes them.
type ConflictError struct {
	// Differences are sentences that name the dataset or family and both sides. They are for the log and for operators: what is
	// stored may have been declared for another tenant.
	Differences []string

	outside bool // the call was made for a tenant
}

// Error implements error and lists all differences. Of a call whose context carries a tenant it tells their number only.
func (e *ConflictError) Error() string {
	if e.outside {
		return fmt.Sprintf("%v: %d differences", ErrSchemaConflict, len(e.Differences))
	}
	return fmt.Sprintf("%v: %s", ErrSchemaConflict, strings.Join(e.Differences, "; "))
}

// Unwrap returns ErrSchemaConflict.
func (e *ConflictError) Unwrap() error { return ErrSchemaConflict }
