package engine

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

// DropRowRange implements the service's method. One tombstone deletes all rows. Pebble frees their space when it
// compacts the files below.
func (e *Engine) DropRowRange(ctx context.Context, req *adminpb.DropRowRangeRequest) (*emptypb.Empty, error) {
	err := e.change(ctx, func() error {
		t, err := e.table(req.GetName())
		if err != nil {
			return err
		}
		lower, upper := tableRange(t.id)
		switch target := req.GetTarget().(type) {
		case *adminpb.DropRowRangeRequest_RowKeyPrefix:
			if err := checkRowKey(target.RowKeyPrefix); err != nil {
				return invalidf("Field row_key_prefix: want 1 to %d bytes, got %d", maxRowKey, len(target.RowKeyPrefix))
			}
			lower = appendEscaped(lower, target.RowKeyPrefix)
			upper = rowfilter.PrefixEnd(lower)
		case *adminpb.DropRowRangeRequest_DeleteAllDataFromTable:
			if !target.DeleteAllDataFromTable {
				return invalidf("Field delete_all_data_from_table must be true if set")
			}
		default:
			return invalidf("Neither row_key_prefix nor delete_all_data_from_table is set")
		}
		b := e.db.NewBatch()
		if err := b.DeleteRange(lower, upper, nil); err != nil {
			return err
		}
		t.gate.Lock()
		defer t.gate.Unlock()
		if err := e.commit(b); err != nil {
			return err
		}
		e.cleanups.addDeleted(deletionsPerFlush)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

func consistencyToken(t *table) string { return fmt.Sprintf("tidemark-%d", t.id) }

// GenerateConsistencyToken implements the service's method.
func (e *Engine) GenerateConsistencyToken(ctx context.Context, req *adminpb.GenerateConsistencyTokenRequest) (*adminpb.GenerateConsistencyTokenResponse, error) {
	if err := e.enter(ctx); err != nil {
		return nil, statusOf(err)
	}
	defer e.leave()
	t, err := e.table(req.GetName())
	if err != nil {
		return nil, err
	}
	return &adminpb.GenerateConsistencyTokenResponse{ConsistencyToken: consistencyToken(t)}, nil
}

// CheckConsistency implements the service's method. With one copy of the data, a token is consistent as soon as it
// exists.
func (e *Engine) CheckConsistency(ctx context.Context, req *adminpb.CheckConsistencyRequest) (*adminpb.CheckConsistencyResponse, error) {
	if err := e.enter(ctx); err != nil {
		return nil, statusOf(err)
	}
	defer e.leave()
	t, err := e.table(req.GetName())
	if err != nil {
		return nil, err
	}
	if req.GetConsistencyToken() != consistencyToken(t) {
		return nil, invalidf("Token %q is not valid for the table", req.GetConsistencyToken())
	}
	return &adminpb.CheckConsistencyResponse{Consistent: true}, nil
}
