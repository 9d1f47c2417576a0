package ensure

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemark-go/tidemark/tenant"
)

// TestTurns checks that calls for one tenant run one after another, that tenants do not wait for each other, and that a
// call stops waiting when its context ends.
func TestTurns(t *testing.T) {
	var turns Turns
	a, b := tenant.MustParse("a"), tenant.MustParse("b")
	end, err := turns.Take(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	endOther, err := turns.Take(t.Context(), b)
	if err != nil {
		t.Fatalf("call of another tenant: got %v, want its turn at once", err)
	}
	endOther()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.Take(over, a); !errors.Is(err, context.Canceled) {
		t.Errorf("call with an ended context: got %v, want the context's error", err)
	}
	got := make(chan struct{})
	go func() {
		end, err := turns.Take(t.Context(), a)
		if err == nil {
			end()
		}
		close(got)
	}()
	end()
	<-got
	if len(turns.of) != 0 {
		t.Errorf("got %d remembered tenants without a call, want 0", len(turns.of))
	}
}
