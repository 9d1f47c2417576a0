package engine

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

// CheckAndMutateRow implements the service's method.
func (e *Engine) CheckAndMutateRow(ctx context.Context, req *bigtablepb.CheckAndMutateRowRequest) (*bigtablepb.CheckAndMutateRowResponse, error) {
	matched, err := e.checkAndMutate(ctx, req)
	if err != nil {
		return nil, statusOf(err)
	}
	return &bigtablepb.CheckAndMutateRowResponse{PredicateMatched: matched}, nil
}

func (e *Engine) checkAndMutate(ctx context.Context, req *bigtablepb.CheckAndMutateRowRequest) (matched bool, err error) {
	if err := e.enterWrite(ctx); err != nil {
		return false, err
	}
	defer e.leave()
	at, err := e.target(req.GetTableName(), req.GetAuthorizedViewName(), "")
	if err != nil {
		return false, err
	}
	s, err := at.hold()
	if err != nil {
		return false, err
	}
	a, matched, err := e.checkAndApply(ctx, at, s, req)
	at.table.gate.RUnlock()
	if serr := e.waitDurable(ctx, a); serr != nil {
		return false, serr
	}
	return matched, e.readError(err)
}

// checkAndApply checks the whole request before it reads the row, so that errors of the request do not depend on the
// row. It returns what waitDurable needs, also with an error.
func (e *Engine) checkAndApply(ctx context.Context, at target, s *schema, req *bigtablepb.CheckAndMutateRowRequest) (a applied, matched bool, err error) {
	key := req.GetRowKey()
	if err := checkRow(at, key); err != nil {
		return a, false, err
	}
	if len(req.GetTrueMutations())+len(req.GetFalseMutations()) == 0 {
		return a, false, invalidf("No mutations provided")
	}
	for _, muts := range [][]*bigtablepb.Mutation{req.GetTrueMutations(), req.GetFalseMutations()} {
		if err := checkCount(len(muts)); err != nil {
			return a, false, err
		}
		if _, err := checkMutations(at, s, muts); err != nil {
			return a, false, err
		}
	}
	filter, err := rowfilter.Compile(req.GetPredicateFilter())
	if err != nil {
		return a, false, err
	}
	hash := e.rowHash(at.table.id, key)
	lock := &e.rows[hash%rowStripes]
	lock.Lock()
	defer lock.Unlock()
	matched, err = e.matches(ctx, at, s, key, filter)
	if err != nil {
		return applied{read: e.inFlight.observe(e.db, hash)}, false, err
	}
	muts := req.GetFalseMutations()
	if matched {
		muts = req.GetTrueMutations()
	}
	b := e.db.NewIndexedBatch()
	w := e.mutator(at.table, s, b)
	if err := w.mutateRow(key, muts); err != nil {
		return a, false, err
	}
	a, err = e.apply(b, hash)
	e.cleanups.addDeleted(w.deleted)
	return a, matched, err
}

// matches reports whether a filter lets any cell of a row through.
func (e *Engine) matches(ctx context.Context, at target, s *schema, key []byte, filter *rowfilter.Filter) (bool, error) {
	row := rowSpan(at.table.id, key)
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: row.lower, UpperBound: row.upper})
	if err != nil {
		return false, err
	}
	defer it.Close()
	if !it.First() {
		return false, it.Error()
	}
	scan := rowScanner{e: e, it: it, schema: s, view: at.view, bounds: filter.Bounds()}
	if err := scan.forward(ctx); err != nil {
		return false, err
	}
	e.noteSkipped(it, row, false, 0)
	return len(filter.Apply(scan.rowKey, scan.cells)) > 0, nil
}

// ReadModifyWriteRow implements the service's method.
func (e *Engine) ReadModifyWriteRow(ctx context.Context, req *bigtablepb.ReadModifyWriteRowRequest) (*bigtablepb.ReadModifyWriteRowResponse, error) {
	row, err := e.readModifyWrite(ctx, req)
	if err != nil {
		return nil, statusOf(err)
	}
	return &bigtablepb.ReadModifyWriteRowResponse{Row: row}, nil
}

func (e *Engine) readModifyWrite(ctx context.Context, req *bigtablepb.ReadModifyWriteRowRequest) (*bigtablepb.Row, error) {
	if err := e.enterWrite(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	at, err := e.target(req.GetTableName(), req.GetAuthorizedViewName(), "")
	if err != nil {
		return nil, err
	}
	s, err := at.hold()
	if err != nil {
		return nil, err
	}
	a, row, err := e.modify(at, s, req)
	at.table.gate.RUnlock()
	if serr := e.waitDurable(ctx, a); serr != nil {
		return nil, serr
	}
	return row, e.readError(err)
}

// modify returns what waitDurable needs, also with an error.
func (e *Engine) modify(at target, s *schema, req *bigtablepb.ReadModifyWriteRowRequest) (a applied, row *bigtablepb.Row, err error) {
	key := req.GetRowKey()
	if err := checkRow(at, key); err != nil {
		return a, nil, err
	}
	if len(req.GetRules()) == 0 {
		return a, nil, invalidf("No rules provided")
	}
	if err := checkCount(len(req.GetRules())); err != nil {
		return a, nil, err
	}
	for _, rule := range req.GetRules() {
		if err := checkRule(at, s, rule); err != nil {
			return a, nil, err
		}
	}
	hash := e.rowHash(at.table.id, key)
	lock := &e.rows[hash%rowStripes]
	lock.Lock()
	defer lock.Unlock()
	b := e.db.NewIndexedBatch()
	w := e.mutator(at.table, s, b)
	w.row = appendRow(w.row[:0], at.table.id, key)
	var result rowBuilder
	for _, rule := range req.GetRules() {
		if err := w.follow(rule, &result); err != nil {
			return applied{read: e.inFlight.observe(e.db, hash)}, nil, err // the refusal may depend on what was read
		}
	}
	for _, c := range result.cells {
		if err := w.set(s.families[c.family], c.qualifier, c.timestamp, c.value); err != nil {
			return a, nil, err
		}
	}
	a, err = e.apply(b, hash)
	return a, result.row(key), err
}

func checkRule(at target, s *schema, rule *bigtablepb.ReadModifyWriteRule) error {
	f := s.families[rule.GetFamilyName()]
	switch {
	case f == nil:
		return unknownFamily(rule.GetFamilyName())
	case f.aggregate != aggregateNone:
		return invalidf("ReadModifyWriteRow: family %q is an aggregate family", f.name)
	case at.view != nil && !at.view.hasColumn(f.name, rule.GetColumnQualifier()):
		return outsideView(f.name, rule.GetColumnQualifier())
	}
	switch rule.GetRule().(type) {
	case *bigtablepb.ReadModifyWriteRule_AppendValue, *bigtablepb.ReadModifyWriteRule_IncrementAmount:
		return checkQualifier(rule.GetColumnQualifier())
	}
	return invalidf("Rule is not set")
}

// follow applies one rule to the newest cell of its column, or to the cell in result if an earlier rule changed it. The
// new cell's timestamp is the server's, or the old cell's if that is later, so that the new cell is the newest.
func (w *mutator) follow(rule *bigtablepb.ReadModifyWriteRule, result *rowBuilder) error {
	f := w.schema.families[rule.GetFamilyName()]
	c, found := result.cell(f.name, rule.GetColumnQualifier())
	if !found {
		var err error
		if c.value, c.timestamp, found, err = w.newest(f, rule.GetColumnQualifier()); err != nil {
			return err
		}
		c.timestamp = max(c.timestamp, w.now)
		result.size += len(c.value)
	}
	result.size -= len(c.value)
	switch r := rule.GetRule().(type) {
	case *bigtablepb.ReadModifyWriteRule_AppendValue:
		c.value = append(c.value, r.AppendValue...)
		if err := checkValue(c.value); err != nil {
			return err
		}
	case *bigtablepb.ReadModifyWriteRule_IncrementAmount:
		n, ok := decodeInt64(c.value)
		if found && !ok {
			return status.Errorf(codes.FailedPrecondition,
				"Increment of a cell that holds %d bytes, want a 64-bit big-endian integer", len(c.value))
		}
		c.value = appendInt64(c.value[:0], n+r.IncrementAmount)
	default:
		return fmt.Errorf("engine: rule %T was not checked", r)
	}
	if result.size += len(c.value); result.size > maxRowBytes {
		return invalidf("The changed cells hold more than %d bytes, which is the most that can be read of a row", maxRowBytes)
	}
	return nil
}
