package history

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// erasures erase a tenant, and an entity of another, while programs write to both.
type erasures struct{ all, writers sync.WaitGroup }

var erasedFields = map[string]string{"site": "s", "device": "erased"}

var erasedEntity = tsdb.NewEntity("s", "erased")

// beginErasures starts both, and their writers. An erasure takes longer than the load: all programs have to know of it
// first. In real time that takes too long, so there the writers end before the erasures begin, and only the calls that
// they have made have to end. They write no points with a rollup there, since workers that do not know of the erasure
// would write its buckets.
func (w *world) beginErasures(ctx context.Context) *erasures {
	e := new(erasures)
	writing, stop := context.WithCancel(w.t.Context())
	var opts tenants.EraseOptions
	if w.real {
		opts.Settle = requestTimeout + time.Second
	}
	var erasing sync.WaitGroup
	// erase makes a call until it succeeds; a rival makes it once, and may take the erasure over or lose it.
	erase := func(rival bool, call func(context.Context, *tsdb.Store) (tenants.Report, error)) {
		erasing.Go(func() {
			pause(ctx, w.load/3+w.chance.millis(500))
			if w.real {
				stop()
				e.writers.Wait()
			}
			for {
				_, err := call(w.t.Context(), w.nodes[w.chance.intN(stores)].store)
				if w.explain(err, tenants.ErrTakenOver); err == nil || rival {
					return
				}
				if errors.Is(err, tenants.ErrTakenOver) {
					time.Sleep(time.Minute)
				}
			}
		})
	}
	all := func(ctx context.Context, s *tsdb.Store) (tenants.Report, error) {
		return tenants.Erase(ctx, s, gone, opts)
	}
	erase(false, all)
	if !w.real { // who loses an erasure to a rival waits a minute
		erase(true, all)
	}
	erase(false, func(ctx context.Context, s *tsdb.Store) (tenants.Report, error) {
		return tenants.EraseEntity(ctx, s, acme, "", erasedFields, opts)
	})
	for _, n := range w.nodes {
		e.writers.Go(func() { w.writeErased(writing, n) })
	}
	e.all.Go(func() {
		erasing.Wait()
		stop()
		e.writers.Wait()
	})
	return e
}

// writeErased writes to what is erased, as long as that is possible.
func (w *world) writeErased(ctx context.Context, n *node) {
	for i := 0; pause(ctx, w.chance.millis(1000)); i++ {
		for _, d := range w.sets {
			for id, e := range map[tenant.ID]tsdb.Entity{gone: entityAt(i), acme: erasedEntity} {
				w.explain(d.put(w.t.Context(), n.store, id, e, i%slots), tsdb.ErrErased, tsdb.ErrExists)
			}
		}
		if !w.real {
			w.explain(w.feed.schema.For(n.store, gone).Put(w.t.Context(), feedEntities[0], time.Now(), 1), tsdb.ErrErased)
		}
		w.explain(rollup.NewAdder(w.counters.rollups[once], w.counters.schema.For(n.store, gone), nil).Add(w.t.Context(), counted, start, 1), tsdb.ErrErased)
	}
}

// check checks that no row of either is left.
func (e *erasures) check(w *world) {
	e.all.Wait()
	client, admin, err := local.Clients(w.t.Context(), w.link.engine.Load().of(0))
	w.must(err)
	defer admin.Close()
	err = client.Open(table).ReadRows(w.t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		if key := r.Key(); strings.HasPrefix(key, "gone#") || strings.HasPrefix(key, "acme#") && strings.Contains(key, "#s#erased#") {
			w.fail("the row %q is left after its erasure", key)
		}
		return true
	}, bigtable.RowFilter(bigtable.StripValueFilter()))
	w.must(err)
	if w.real {
		return // not all stores know of the erasure
	}
	for _, n := range w.nodes {
		if err := w.feed.schema.For(n.store, gone).Put(w.t.Context(), feedEntities[0], time.Now(), 1); !errors.Is(err, tsdb.ErrErased) {
			w.fail("a write of an erased tenant ends with %v, want ErrErased", err)
		}
	}
}
