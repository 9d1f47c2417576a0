package engine

import (
	"context"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// hold locks a table's gate for reading and returns its schema. It looks up the view again, because it may have changed
// before the gate was locked. On success, the caller releases the gate.
func (at *target) hold() (*schema, error) {
	t := at.table
	t.gate.RLock()
	if t.dropped {
		t.gate.RUnlock()
		return nil, notFoundf("Table %q not found", t.name)
	}
	if at.view != nil {
		name := at.view.message.GetName()
		if at.view = (*t.views.Load())[at.view.id()]; at.view == nil {
			t.gate.RUnlock()
			return nil, notFoundf("Authorized view %q not found", name)
		}
	}
	return t.schema.Load(), nil
}

// MutateRow implements the service's method.
func (e *Engine) MutateRow(ctx context.Context, req *bigtablepb.MutateRowRequest) (*bigtablepb.MutateRowResponse, error) {
	if err := e.mutateRow(ctx, req); err != nil {
		return nil, statusOf(err)
	}
	return &bigtablepb.MutateRowResponse{}, nil
}

func (e *Engine) mutateRow(ctx context.Context, req *bigtablepb.MutateRowRequest) error {
	if err := e.enterWrite(ctx); err != nil {
		return err
	}
	defer e.leave()
	at, err := e.target(req.GetTableName(), req.GetAuthorizedViewName(), "")
	if err != nil {
		return err
	}
	if err := checkCount(len(req.GetMutations())); err != nil {
		return err
	}
	s, err := at.hold()
	if err != nil {
		return err
	}
	blind, err := checkEntry(at, s, req.GetRowKey(), req.GetMutations())
	var t token
	if err == nil {
		t, err = e.tokenOf(at.table.id, req.GetRowKey(), req.GetMutations(), req.GetIdempotency())
	}
	if err != nil {
		at.table.gate.RUnlock()
		return err
	}
	hash := e.rowHash(at.table.id, req.GetRowKey())
	lock := &e.rows[hash%rowStripes]
	var a applied
	if blind {
		b := e.db.NewBatch()
		w := e.mutator(at.table, s, b)
		if err = w.setRow(req.GetRowKey(), req.GetMutations()); err == nil {
			lock.RLock()
			a, err = e.apply(b, hash)
			lock.RUnlock()
		}
	} else {
		b := e.db.NewIndexedBatch()
		w := e.mutator(at.table, s, b)
		lock.Lock()
		if err = w.mutateRowOnce(e, t, req.GetRowKey(), req.GetMutations()); err == nil {
			a, err = e.apply(b, hash)
		}
		lock.Unlock()
		e.cleanups.addDeleted(w.deleted)
	}
	if t.set {
		e.forgetTokens()
	}
	at.table.gate.RUnlock()
	if err != nil {
		return e.readError(err)
	}
	return e.waitDurable(ctx, a)
}

func checkCount(n int) error {
	if n > maxMutations {
		return invalidf("Request has %d mutations, want at most %d", n, maxMutations)
	}
	return nil
}
