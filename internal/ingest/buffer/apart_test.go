package buffer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestTenantsStayApart checks that, if tenants cannot share a request, no batch ever holds items of two tenants: no
// first attempt, retry or half. Each item still ends.
func TestTenantsStayApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		mixed := false
		s := &service{t: t, takes: 3 * time.Millisecond}
		s.verdict = func(*Item) error {
			if rnd.IntN(4) == 0 {
				return errBusy
			}
			return nil
		}
		s.whole = func(items []*Item) (r Report, err error) {
			for _, it := range items {
				mixed = mixed || it.Tenant != items[0].Tenant
			}
			if len(items) > 1 && rnd.IntN(5) == 0 {
				return Report{Suspect: true}, errBad
			}
			return r, err
		}
		opts := options()
		opts.Apart, opts.InFlight = true, 1
		q := New(s, opts)
		o := &outcomes{t: t}
		for i := range 400 {
			of := i % 46 * (i % 2) // half of the items belong to one tenant, whose queue is long
			it := item(fmt.Sprintf("t%d", of), fmt.Sprintf("t%d#%d", of, i))
			it.Done, it.Alone = o.done, of == 3
			if err := q.Enqueue(t.Context(), it); err != nil {
				t.Fatal(err)
			}
			if i%50 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if mixed {
			t.Error("a batch held items of two tenants")
		}
		if len(o.seen) != 400 {
			t.Errorf("got %d of 400 items ended", len(o.seen))
		}
		alone := 0
		for _, keys := range s.requests {
			if strings.HasPrefix(keys[0], "t3#") && len(keys) > opts.AloneEntries {
				alone++
			}
		}
		if alone > 0 {
			t.Errorf("got %d batches of items that go alone over the limit, want 0", alone)
		}
	})
}

// TestSmallTenantsLingerApart checks that, if tenants cannot share a request, many small tenants linger although their
// items together would fill a batch, until little room is left.
func TestSmallTenantsLingerApart(t *testing.T) {
	for apart, want := range map[bool]int{false: 2, true: 5} {
		synctest.Test(t, func(t *testing.T) {
			s, opts := &service{t: t}, options()
			opts.Apart = apart
			q := New(s, opts)
			for round := range 3 {
				for i := range 5 {
					if err := q.Enqueue(t.Context(), item(fmt.Sprint(i), fmt.Sprint(i, "#", round))); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
			}
			if err := q.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := len(s.requests); got != want {
				t.Errorf("apart %v: got %d requests for 15 items of 5 tenants, want %d", apart, got, want)
			}
			if err := q.Close(t.Context()); err != nil && !errors.Is(err, ErrClosed) {
				t.Fatal(err)
			}
		})
	}
}
