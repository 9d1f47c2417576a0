package ensure

import (
	"context"
	"sync"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/tenant"
)

// Turns lets calls that create datasets for one tenant take turns. Calls for different tenants do not wait for each
// other. The zero Turns is ready to use. It holds only tenants with running calls, and is safe for concurrent use.
type Turns struct {
	mu sync.Mutex
	of map[tenant.ID]*turn
}

type turn struct {
	held  chan struct{} // holds one value while a call has its turn
	calls int           // calls that have or await their turn
}

// Take waits for the turn of a call for a tenant. end ends the turn; it is nil if err is the context's error.
func (t *Turns) Take(ctx context.Context, id tenant.ID) (end func(), err error) {
	of := t.join(id)
	select {
	case of.held <- struct{}{}:
		return func() {
			<-of.held
			t.leave(id, of)
		}, nil
	case <-ctx.Done():
		t.leave(id, of)
		return nil, ctxerr.Of(ctx)
	}
}

func (t *Turns) join(id tenant.ID) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of[id]
	if of == nil {
		if t.of == nil {
			t.of = map[tenant.ID]*turn{}
		}
		of = &turn{held: make(chan struct{}, 1)}
		t.of[id] = of
	}
	of.calls++
	return of
}

func (t *Turns) leave(id tenant.ID, of *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of.calls--; of.calls == 0 {
		delete(t.of, id)
	}
}
