// Package tenants is the life cycle of a store's tenants, for those who operate it: their way in (Onboard), who there is
// (List), what each has stored (Usage), and their way out (Erase, EraseEntity, Readmit). It also removes what all tenants have
// stopped to use: datasets, retention classes, codec tags and rollups (Retire, Remove, Release).
//
// All of it goes by the store's catalogue, so it works on datasets that the program was not compiled with. It reads and
// deletes rows, and never decodes a payload. What it keeps are rows of the store's own: a profile for each tenant that was
// onboarded, and a mark for each that is erased, which every open store of the table honours within tsdb.ErasedWithin.
//
// The calls are an operator's: they take the tenant as an argument, and ask for none in the context, also of a store that
// requires one. Where the context carries another one (tenant.NewContext) they fail with tsdb.ErrTenantMismatch, and List
// where it carries any.
package tenants

import (
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
)

// The errors to tell apart with errors.Is. Those of package tsdb pass through as well.
var (
	// ErrInvalid: an argument that nothing can be made of; a *tsdb.InvalidError says which, and the limit.
	ErrInvalid = rowkey.ErrInvalid
	// ErrErased: the tenant is erased, or is being erased.
	ErrErased = tsdb.ErrErased
	// ErrErasing: the erasure has not ended, so the tenant cannot be admitted again. Erase continues it.
	ErrErasing = errtype.New("tenants.ErrErasing", "tenants: the erasure has not ended")
	// ErrConflict: what is stored differs from what was to be stored, or another changed it at the same time.
	ErrConflict = errtype.New("tenants.ErrConflict", "tenants: the tenant's row was changed by another")
	// ErrTakenOver: another call goes on with this erasure; this one has ended.
	ErrTakenOver = errtype.New("tenants.ErrTakenOver", "tenants: another call has taken the erasure over")
	// ErrImpossible: something still uses what is to be removed.
	ErrImpossible = errtype.New("tenants.ErrImpossible", "tenants: impossible to remove")
	// ErrRemains: rows of what was erased keep coming, from a program that does not honour the mark.
	ErrRemains = errtype.New("tenants.ErrRemains", "tenants: rows remain after the erasure")
)
