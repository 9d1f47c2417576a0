package main

import (
	"context"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// sink takes the points of one dataset and tenant, and says what became of each.
type sink interface {
	PutMany(ctx context.Context, points []tsdb.Point[codec.Record]) ([]tsdb.Outcome, error)
}

// writer is the way of all points to the store.
type writer struct{ store *tsdb.Store }

// via returns the way of the points of one dataset and tenant.
func (w *writer) via(schema *tsdb.Schema[codec.Record], id tenant.ID) sink {
	return schema.For(w.store, id)
}

// close delivers what is buffered, and says what could not be.
func (w *writer) close(context.Context) error { return nil }
