// Package retention changes how long a store keeps its data, for those who operate it: as a plan that is read before anything
// happens.
//
//	plan, err := retention.NewPlan(ctx, store, readings, events) // changes nothing
//	fmt.Print(plan)
//	report, err := plan.Apply(ctx, store, retention.ApplyOptions{Allow: []string{"d90"}})
//
// A garbage collection policy acts on what is already stored, it acts for good, and it takes up to a week to do so. Store.Ensure
// therefore never changes one: where a policy differs it fails. A plan compares three things: what the schemas declare, what
// the catalogue of the table has recorded, and what the table really has. So it can tell a change of the schemas from a change
// that somebody made elsewhere, in a console, and it says for each step what becomes invisible and is deleted. Apply makes the
// changes of the plan and no others: it looks again, and refuses where the table is no longer what the plan saw. Steps that
// delete anything have to be allowed by name. No family is ever deleted.
//
// For a program that was not compiled with the schemas, such as an operator's tool, NewPlanFor plans by the catalogue, with
// other policies for some classes.
//
// Where the store works through authorized views, Store.EnsureView must follow for each tenant when families were created, as after
// Store.Ensure.
//
// The calls are an operator's. They need the admin rights to read and to change the table, a store that was opened with
// tsdb.Open, package embedded, or a client made with tsdb.ClientConfig and tsdb.DialOptions, and no tenant in the context: where
// it carries one they fail with tsdb.ErrTenantMismatch.
package retention

import (
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// The errors to tell apart with errors.Is. Those of packages tsdb and gc pass through as well.
var (
	// ErrInvalid: an argument that nothing can be made of; a *tsdb.InvalidError says which, and the limit.
	ErrInvalid = rowkey.ErrInvalid
	// ErrStale: the table or its catalogue is not what the plan saw, and not what it wants either. Make a new plan.
	ErrStale = errtype.New("retention.ErrStale", "retention: the table is not what the plan saw")
	// ErrNotAllowed: the plan deletes data by steps that ApplyOptions.Allow does not name. The error names all of them.
	ErrNotAllowed = errtype.New("retention.ErrNotAllowed", "retention: the plan has destructive steps that are not allowed")
	// ErrImpossible: the plan holds what cannot be done, so none of it is. The error says why.
	ErrImpossible = errtype.New("retention.ErrImpossible", "retention: the plan cannot be applied")
)
