package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// columnAssigned is a profile's column with its Assignment, next to the document. Stores read only this column. Without
// it there is no assignment.
const columnAssigned = "c"

// Assignment holds the retention classes in which a tenant's points are written. It is immutable.
type Assignment struct {
	Retention string            `json:"retention,omitempty"` // in all datasets that offer it
	Classes   map[string]string `json:"classes,omitempty"`   // by dataset; takes precedence over Retention
}

// Of returns the class for a dataset, or empty for the dataset's default.
func (a *Assignment) Of(dataset string) string {
	if class, ok := a.Classes[dataset]; ok {
		return class
	}
	return a.Retention
}

// SetAssignment adds the column that stores read to the mutation of a profile's row.
func SetAssignment(mut *bigtable.Mutation, a Assignment) {
	text := assignedText(a)
	if text == nil {
		mut.DeleteCellsInColumn(Family, columnAssigned)
		return
	}
	mut.Set(Family, columnAssigned, 0, text)
}

func assignedText(a Assignment) []byte {
	if a.Retention == "" && len(a.Classes) == 0 {
		return nil
	}
	text, err := json.Marshal(a)
	if err != nil { // cannot happen: a's fields are all strings
		return nil
	}
	return text
}

// Assigns reports whether the row that the document was read from has a's column.
func (d Document) Assigns(a Assignment) bool { return string(d.assigned) == string(assignedText(a)) }

// TenantAssignment is one tenant's assignment.
type TenantAssignment struct {
	Tenant string
	*Assignment
}

// MostAssignments is how many tenants may have classes assigned. Each store that writes to schemas with a choice of
// classes holds all assignments in memory.
const MostAssignments = 1_000_000

var errManyAssignments = errors.New("tsdb: the table has more than 1,000,000 tenants whose profiles name retention classes, or limits")

// Assignments returns the assignments of some tenants, or all if names is nil; equal ones share memory. It skips one
// that does not decode, so that other tenants are not affected: that tenant's points are written in the default class.
// An error is the last pair.
func Assignments(ctx context.Context, t *bt.Table, names []string) iter.Seq2[TenantAssignment, error] {
	seen := map[string]*Assignment{}
	return eachOf(ownRows(ctx, t, rowkey.ProfileRows, names, columnAssigned), MostAssignments, errManyAssignments, func(row *bt.Row) (TenantAssignment, bool) {
		a := parseAssignment(seen, value(row, columnAssigned))
		return TenantAssignment{strings.TrimPrefix(row.Key(), rowkey.ProfileRows), a}, a != nil
	})
}

// parseAssignment returns the assignment in a column, or nil if it does not decode, and adds it to seen.
func parseAssignment(seen map[string]*Assignment, text []byte) *Assignment {
	if a := seen[string(text)]; a != nil {
		return a
	}
	a := &Assignment{}
	if err := json.Unmarshal(text, a); err != nil {
		return nil
	}
	seen[string(text)] = a
	return a
}
