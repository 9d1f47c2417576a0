package tenancy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/refresh"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// entriesWithin is the maximum age of the catalogue entries by which rollups are computed, if the catalogue can be
// read. If a policy was lengthened, an older entry has the shorter policy, so nothing is computed that may be
// incomplete.
const entriesWithin = 2 * time.Minute

// entries caches the catalogue entries of the datasets that have rollups to compute.
type entries struct {
	mu     sync.Mutex
	of     map[string]*refresh.Value[catalog.Entry]
	closed bool
}

// Entry returns the catalogue's entry of a dataset, or the zero Entry if there is none.
func (t *Tenancy) Entry(ctx context.Context, dataset string) (catalog.Entry, error) {
	e := &t.entries
	e.mu.Lock()
	k := e.of[dataset]
	if k == nil && !e.closed {
		k = &refresh.Value[catalog.Entry]{Load: func(ctx context.Context, _ *catalog.Entry) (*catalog.Entry, error) {
			return t.readEntry(ctx, dataset)
		}}
		k.Open(t.Watch, refresh.Times{Due: entriesWithin / 2, Within: entriesWithin, Wait: 5 * time.Second, Pause: 10 * time.Second})
		e.of[dataset] = k
	}
	e.mu.Unlock()
	if k == nil {
		return catalog.Entry{}, bt.ErrClosed
	}
	entry, err := k.Get(ctx)
	if err != nil {
		return catalog.Entry{}, err
	}
	return *entry, nil
}

func (e *entries) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	for _, k := range e.of {
		k.Close()
	}
}

func (s *Tenancy) readEntry(ctx context.Context, dataset string) (*catalog.Entry, error) {
	st, err := catalog.Load(ctx, s.Whole, []string{dataset})
	switch {
	case status.Code(err) == codes.NotFound:
		return &catalog.Entry{}, nil // the call itself reports that the table is missing
	case err != nil:
		return nil, fmt.Errorf("tsdb: read the catalogue's entry of dataset %s: %w", dataset, s.Explain(err))
	}
	entry := st.Datasets[dataset]
	return &entry, nil
}
