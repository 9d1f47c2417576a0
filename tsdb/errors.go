package tsdb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/diskerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// Sentinels to compare with errors.Is. Errors of other packages pass through unchanged: tenant.ErrInvalid,
// tenant/limit.ErrExceeded, codec.ErrCorrupt, codec.ErrEncode, and the context's errors.
var (
	// ErrInvalid means that an argument is not valid. An InvalidError names the argument and what is allowed. Nothing
	// was sent.
	ErrInvalid = rowkey.ErrInvalid
	// ErrNotFound means that the point does not exist or has expired.
	ErrNotFound = errors.New("tsdb: not found")
	// ErrExists means that a schema with FirstWins already has another value at this entity and time, or that a Put
	// would change an Immutable field of a schema with Merge.
	ErrExists = dataset.ErrExists
	// ErrExpired means that the point is older than its retention, so no read would return it.
	ErrExpired = dataset.ErrExpired
	// ErrLate means that the point is older than SchemaOptions.MaxLate allows.
	ErrLate = dataset.ErrLate
	// ErrTooFarAhead means that the point is further in the future than SchemaOptions.MaxFuture allows.
	ErrTooFarAhead = dataset.ErrTooFarAhead
	// ErrRejected matches the error of every write that is certainly not stored.
	ErrRejected = errors.New("tsdb: write rejected")
	// ErrUnknown matches the error of every write that may or may not be stored. Writing a point again is safe.
	// An event of a rollup of mode Once is not: repeated, it may count twice.
	ErrUnknown = errors.New("tsdb: write outcome unknown")
	// ErrCursor means that a page's cursor is malformed, or belongs to another tenant, dataset, query or key. An
	// InvalidError says which, if that can be determined. Nothing was sent. Start again at the first page.
	ErrCursor = cursor.ErrCursor
	// ErrTenantMismatch means that the context carries a different tenant than the repository.
	ErrTenantMismatch = tenancy.ErrTenantMismatch
	// ErrNoTenant means that the context carries no tenant, but the call or the store (RequireTenant) needs one.
	ErrNoTenant = tenancy.ErrNoTenant
	// ErrForeignRow means that the service returned a row outside the requested range. The row was not decoded.
	ErrForeignRow = bt.ErrForeignRow
	// ErrNoTable means that the table, or the column family of the schema's class, does not exist. Store.Ensure creates
	// them.
	ErrNoTable = tenancy.ErrNoTable
	// ErrNoView means that the store uses authorized views and the tenant has none. Store.EnsureView creates it.
	ErrNoView = tenancy.ErrNoView
	// ErrUnreadableEntry means that an entry of the catalogue is damaged, or was written by a newer program.
	// Store.Datasets yields it.
	ErrUnreadableEntry = errors.New("tsdb: unreadable entry of the catalogue")
	// ErrErased means that the tenant, the dataset, or the entity to be written, is erased or being erased (package
	// tenants).
	ErrErased = tenancy.ErrErased
	// ErrRemoving means that column families of a retention class of the dataset are being removed (package tenants).
	// Ensure and Verify succeed after the removal has ended or tenants.Release has cancelled it.
	ErrRemoving = tenancy.ErrRemoving
	// ErrTooManyFollowers means that the store has 1,000 followers. Try again when one has been closed. A tenant that
	// has 100 of them gets a *limit.Error with limit.Followers instead.
	ErrTooManyFollowers = points.ErrTooManyFollowers
	// ErrClosed means that the store, or the writer, is closed, or that the writer was closed before it could deliver
	// the point.
	ErrClosed = bt.ErrClosed
	// ErrLocked means that another store, writer or process uses the folder of the store (package embedded) or of the
	// journal.
	ErrLocked = diskerr.ErrLocked
	// ErrDamaged means that the disk does not hold what was written. Nothing of the folder is served or delivered, and
	// nothing is lost silently. The error names the file and the place.
	ErrDamaged = diskerr.ErrDamaged
)

// InvalidError describes a refused argument. Its string fields are Field, the argument's name; Value, the refused
// value, up to 64 bytes of it; and Limit, what is allowed. It unwraps to its field Err, a sentinel: ErrInvalid,
// ErrLate, ErrTooFarAhead, ErrExpired, ErrCursor or tenant.ErrInvalid.
type InvalidError = invalid.Error

// ConflictError lists how the table differs from the schemas. The call changed nothing. If
// retention policies differ, package retention shows the effect of changing them, and changes them.
type ConflictError struct {
	// Differences are sentences that name the dataset or family and both sides. They are for operators: they may
	// describe what another tenant has declared.
	Differences []string

	outside bool // the call was made for a tenant
}

// Error lists all differences. If the call's context carried a tenant, it returns only their number.
func (e *ConflictError) Error() string {
	e = invalid.OrZero(e)
	if e.outside {
		return fmt.Sprintf("%v: %d differences", tenancy.ErrSchemaConflict, len(e.Differences))
	}
	return fmt.Sprintf("%v: %s", tenancy.ErrSchemaConflict, strings.Join(e.Differences, "; "))
}

// Unwrap returns an error by which metrics count all conflicts as one kind.
func (e *ConflictError) Unwrap() error { return tenancy.ErrSchemaConflict }

// ReadError is the error of a call that reads many entities and failed for some of them, or found points that do not
// decode. The results of the other entities are valid.
type ReadError struct {
	// Total is the number of entities in the call.
	Total int
	// Failed lists the failed entities by their index in the call.
	Failed []ReadFailure
}

// ReadFailure is one failed entity of a ReadError. Err is the same error as in the entity's result: PointErrors if a
// payload does not decode, ErrInvalid if the entity does not fit the schema, the context's error if the time ran out
// first, or the error of the read.
type ReadFailure struct {
	Index  int
	Entity Entity
	Err    error
}

// Error returns the number of failures and the first one.
func (e *ReadError) Error() string {
	e = invalid.OrZero(e)
	if len(e.Failed) == 0 {
		return fmt.Sprintf("tsdb: 0 of %d reads failed", e.Total)
	}
	f := e.Failed[0]
	what := "of " + f.Entity.String()
	if f.Entity == (Entity{}) {
		what = "the empty entity"
	}
	return fmt.Sprintf("tsdb: %d of %d reads failed; the one at index %d, %s: %v", len(e.Failed), e.Total, f.Index, what, f.Err)
}

// Unwrap returns the cause of each failure, in order.
func (e *ReadError) Unwrap() []error {
	return causes(invalid.OrZero(e).Failed, func(f ReadFailure) error { return f.Err })
}

// readError returns nil if no entity failed, and a *ReadError otherwise.
func readError(entities []Entity, failed func(i int) error) error {
	var report []ReadFailure
	for i, e := range entities {
		if err := failed(i); err != nil {
			report = append(report, ReadFailure{Index: i, Entity: e, Err: err})
		}
	}
	if report == nil {
		return nil
	}
	return &ReadError{Total: len(entities), Failed: report}
}
