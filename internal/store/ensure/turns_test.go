package ensure

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemark-go/tidemark/tenant"
)

// TestTurns: calls for one tenant come one after another, no tenant waits for another, and a call stops waiting with its context.
func TestTurns(t *testing.T) {
	var turns Turns
	a, b := tenant.MustParse("a"), tenant.MustParse("b")
	end, err := turns.Take(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	endOther, err := turns.Take(t.Context(), b)
	if err != nil {
		t.Fatalf("another tenant waits: %v", err)
	}
	endOther()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.Take(over, a); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context is over has its turn: %v", err)
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
		t.Errorf("%d tenants without a call are remembered", len(turns.of))
	}
}
