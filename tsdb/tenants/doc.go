// Package tenants manages the tenants of a store, for operators: onboarding ([Onboard]), listing ([List]), storage used
// ([Usage]), and removal ([Erase], [EraseEntity], [Readmit]). It also removes datasets, retention classes, codec tags
// and rollups that no tenant uses any more ([Retire], [Remove], [Release]).
//
// No call decodes a payload.
//
// The calls need no tenant in the context, even if the store requires one. If it carries another tenant, they fail with
// tsdb.ErrTenantMismatch; List fails if it carries any.
package tenants

import (
	"github.com/tidemark-go/tidemark/internal/errtype"
)

// Errors for errors.Is. The calls also return errors of package tsdb.
var (
	// ErrConflict: the stored row differs from the one to be written, or another call changed it at the same time.
	ErrConflict = errtype.New("tenants.ErrConflict", "tenants: the tenant's row was changed by another")
	// ErrTakenOver: another call continues this erasure; this one has ended.
	ErrTakenOver = errtype.New("tenants.ErrTakenOver", "tenants: another call has taken the erasure over")
	// ErrImpossible: the part to be removed is still in use.
	ErrImpossible = errtype.New("tenants.ErrImpossible", "tenants: impossible to remove")
)
