package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TestPromQL runs the whole test suite of PromQL over the store.
func TestPromQL(t *testing.T) {
	testkit.Plain(t)
	if testing.Short() {
		t.Skip("-short leaves the suite out")
	}
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	store := openStoreInMemory(t)
	n := 0
	promqltest.RunBuiltinTestsWithStorage(t, engine, func(t testing.TB) storage.Storage {
		n++ // a tenant for each storage
		return newSuiteStorage(t, store, tenant.MustParse(fmt.Sprintf("t%d", n)))
	})
}

func openStoreInMemory(t testing.TB) *tsdb.Store {
	t.Helper()
	store, err := embedded.New(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// suiteStorage is what the suite writes to and reads from: the series of one tenant, by the way of remote write's
// batches.
type suiteStorage struct {
	storage.Storage // the methods that the suite does not call
	*queryable
	prom *promSource
}

func newSuiteStorage(t testing.TB, store *tsdb.Store, id tenant.ID) *suiteStorage {
	t.Helper()
	schema, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	prom := newPromSource(store, schema)
	return &suiteStorage{queryable: &queryable{id, []source{prom}, newBudget(1<<40, 1<<40), 5 * time.Minute}, prom: prom}
}

func (s *suiteStorage) Querier(from, to int64) (storage.Querier, error) {
	return s.queryable.Querier(from, to)
}
func (s *suiteStorage) Close() error { return nil }
func (s *suiteStorage) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &suiteAppender{ctx: ctx, to: s, batch: newWriteBatch()}
}

type suiteAppender struct {
	ctx   context.Context
	to    *suiteStorage
	batch *writeBatch
}

func (a *suiteAppender) Append(
	_ storage.SeriesRef, ls labels.Labels, start, at int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, _ storage.AppendV2Options,
) (storage.SeriesRef, error) {
	if !a.batch.begin(ls, 1) {
		return 0, a.batch.why
	}
	if h != nil || fh != nil {
		if h != nil {
			h = h.Copy()
		} else {
			fh = fh.Copy()
		}
		a.batch.addHistogram(at, start, h, fh)
	} else {
		a.batch.addFloat(at, start, v)
	}
	a.batch.written = append(a.batch.written, ls)
	return 1, a.batch.why
}

func (a *suiteAppender) AppendExemplars(storage.SeriesRef, labels.Labels, []exemplar.Exemplar) (storage.SeriesRef, error) {
	return 0, errors.New("not needed")
}

func (a *suiteAppender) Commit() error {
	_, err := a.to.prom.schema.For(a.to.prom.store, a.to.tenant).PutMany(a.ctx, a.batch.points)
	for _, ls := range a.batch.written {
		a.to.prom.noteWritten(a.to.tenant, ls)
	}
	return err
}

func (a *suiteAppender) Rollback() error { return nil }
