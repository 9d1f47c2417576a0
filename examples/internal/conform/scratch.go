package conform

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// scratchPrefix begins the names that runs choose for their tables, and scratchName matches them.
const scratchPrefix = "tidemark-conform-"

var scratchName = regexp.MustCompile(`^` + scratchPrefix + `\d{8}t\d{4}-[a-z2-7]{8}$`)

// The families of the scratch table, in addition to those of a store.
const (
	plain  = "c_f"
	kept   = "c_all" // all versions of cells
	sums   = "c_sum"
	mins   = "c_min"
	maxs   = "c_max"
	viewID = "conform"
)

// leftovers returns the tables of earlier runs, and of runs that are under way. Tables whose names were given are not
// among them.
func (e *env) leftovers(ctx context.Context) ([]string, error) {
	names, err := e.tables.Tables(ctx)
	if err != nil {
		return nil, explain("list the tables", "bigtable.tables.list", err)
	}
	var left []string
	for _, name := range names {
		if scratchName.MatchString(name) {
			left = append(left, name)
		}
	}
	return left, nil
}

// create makes the scratch table. An instance without aggregates has its other families. If it is unknown whether a
// table of a new name was made, it is removed.
func (e *env) create(ctx context.Context) (string, error) {
	name := e.o.Table
	if name == "" {
		name = scratchPrefix + time.Now().UTC().Format("20060102t1504") + "-" + strings.ToLower(rand.Text()[:8])
	}
	run := ctx
	ctx, cancel := context.WithTimeout(ctx, caseTimeout)
	defer cancel()
	err := e.tables.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: name, ColumnFamilies: map[string]bigtable.Family{
		plain: {GCPolicy: bigtable.MaxVersionsPolicy(1)}, kept: {GCPolicy: bigtable.NoGcPolicy()},
	}})
	switch {
	case status.Code(err) == codes.AlreadyExists:
		return "", fmt.Errorf("conform: the table %s exists; a run makes its own table and deletes it: give another name, or none", name)
	case err != nil:
		what := "make the scratch table " + name
		if !unknown(err) {
			return "", explain(what, "bigtable.tables.create on the instance", err)
		}
		if e.o.Table != "" { // it may be another program's
			return "", fmt.Errorf("%w; the table may exist", explain(what, "", err))
		}
		return "", errors.Join(explain(what, "", err), e.remove(run, name))
	}
	e.table = name
	for family, a := range map[string]bigtable.Aggregator{sums: bigtable.SumAggregator{}, mins: bigtable.MinAggregator{}, maxs: bigtable.MaxAggregator{}} {
		err := e.tables.CreateColumnFamilyWithConfig(ctx, name, family, bigtable.Family{ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: a}})
		if err != nil {
			e.aggregates = err
		}
	}
	e.view = e.tables.CreateAuthorizedView(ctx, &bigtable.AuthorizedViewConf{TableID: name, AuthorizedViewID: viewID, AuthorizedView: &bigtable.SubsetViewConf{
		RowPrefixes: [][]byte{[]byte(viewRows)}, FamilySubsets: map[string]bigtable.FamilySubset{plain: {QualifierPrefixes: [][]byte{{}}}},
	}})
	return name, nil
}

// unknown reports whether a request that failed may have been done.
func unknown(err error) bool {
	switch status.Code(err) {
	case codes.DeadlineExceeded, codes.Canceled, codes.Unavailable, codes.Unknown, codes.Internal, codes.Aborted:
		return true
	}
	return false
}

// remove deletes a table within RemoveTimeout, also after ctx has ended.
func (e *env) remove(ctx context.Context, table string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RemoveTimeout)
	defer cancel()
	switch err := e.tables.DeleteTable(ctx, table); {
	case err == nil || status.Code(err) == codes.NotFound:
		return nil
	case unknown(err):
		return fmt.Errorf("conform: remove the scratch table %s, which may still exist: %w", table, err)
	default:
		return fmt.Errorf("conform: remove the scratch table %s, which still exists: %w", table, err)
	}
}

// explain adds to the error of an admin call which right it needs.
func explain(what, right string, err error) error {
	switch status.Code(err) {
	case codes.PermissionDenied:
		return fmt.Errorf("conform: %s: this needs the permission %s, which roles/bigtable.admin has: %w", what, right, err)
	case codes.NotFound:
		return fmt.Errorf("conform: %s: the project or the instance does not exist: %w", what, err)
	case codes.Unimplemented:
		return fmt.Errorf("conform: %s: the service has no table admin API: %w", what, err)
	}
	return fmt.Errorf("conform: %s: %w", what, err)
}
