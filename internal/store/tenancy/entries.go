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

// entriesWithin is how old the catalogue's entries are at most by which rollups are computed, if they can be read. An older one
// of a policy that was lengthened names the shorter policy: nothing is computed by it that may be incomplete.
const entriesWithin = 2 * time.Minute

// entries are the catalogue's entries of the datasets that rollups are computed of.
type entries struct {
	mu     sync.Mutex
	of     map[string]*refresh.Value[catalog.Entry]
	closed bool
}

// Entry returns the catalogue's entry of a dataset, the zero Entry for none.
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
