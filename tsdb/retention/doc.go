// Package retention changes how long a store keeps its data:
//
//	plan, err := retention.NewPlan(ctx, store, readings, events) // changes nothing
//	fmt.Print(plan)
//	report, err := plan.Apply(ctx, store, retention.ApplyOptions{Allow: []string{"d90"}})
//
// Store.Ensure never changes a policy. A plan distinguishes a change of the schemas from one made elsewhere, and states
// for each step what becomes invisible and is deleted.
//
// If the store works through authorized views and Apply created families, call Store.EnsureView for each tenant
// afterwards.
//
// The calls need admin rights, and a store opened with tsdb.Open, package embedded, or a client made with
// tsdb.ClientConfig and tsdb.DialOptions. They fail with tsdb.ErrTenantMismatch if the context carries a tenant.
package retention

import "github.com/tidemark-go/tidemark/internal/errtype"

// Errors for errors.Is. The calls also return errors of packages tsdb and gc.
var (
	// ErrStale: the table or its catalogue changed after the plan was made. Make a new plan.
	ErrStale = errtype.New("retention.ErrStale", "retention: the table changed after the plan was made")
	// ErrNotAllowed: the plan has steps that delete data and that ApplyOptions.Allow does not name. The error names all
	// of them.
	ErrNotAllowed = errtype.New("retention.ErrNotAllowed", "retention: the plan has destructive steps that are not allowed")
)
