package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// load returns a list of n elements, and counts the calls.
func load(n int, calls *int) func(context.Context) (int, int, error) {
	return func(context.Context) (int, int, error) { *calls++; return n, n, nil }
}

// TestCacheOfAGreedyTenant: a tenant that fills the cache forgets its own lists, and none of another tenant.
func TestCacheOfAGreedyTenant(t *testing.T) {
	c := newCache[int](time.Hour)
	small, great := 0, 0
	globex := tenant.MustParse("globex")
	for i := range 20 {
		for key, err := range map[string]error{
			"small": second(c.get(t.Context(), globex, "list", load(10, &small))),
			"great": second(c.get(t.Context(), acme, fmt.Sprint(i), load(mostCached/3, &great))),
		} {
			if err != nil {
				t.Fatal(key, err)
			}
		}
	}
	if small != 1 {
		t.Errorf("the small tenant's list was read %d times, want once", small)
	}
	if _, err := c.get(t.Context(), acme, "19", load(0, &great)); err != nil || great != 20 {
		t.Errorf("%d reads, %v; want the newest list of the great tenant in the cache", great, err)
	}
	if c.size > mostCached {
		t.Errorf("%d elements are cached, want at most %d", c.size, mostCached)
	}
}

func second[V any](_ V, err error) error { return err }

// TestCacheOfLongKeys: lists without elements need room, too, because clients choose the keys.
func TestCacheOfLongKeys(t *testing.T) {
	c, calls := newCache[int](time.Hour), 0
	for i := range 100 {
		if _, err := c.get(t.Context(), acme, strings.Repeat("x", 4000)+fmt.Sprint(i), load(0, &calls)); err != nil {
			t.Fatal(err)
		}
	}
	if c.size < 100*10 {
		t.Errorf("100 keys of 4,000 bytes count as %d elements", c.size)
	}
}

// TestCacheForgetsOldLists: lists that nobody asks for again do not stay in memory.
func TestCacheForgetsOldLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls := newCache[int](time.Minute), 0
		for i := range 100 {
			if _, err := c.get(t.Context(), acme, fmt.Sprint(i), load(5, &calls)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		if _, err := c.get(t.Context(), tenant.MustParse("globex"), "", load(5, &calls)); err != nil {
			t.Fatal(err)
		}
		if len(c.tenants) != 1 || c.size > 10 {
			t.Errorf("%d tenants and %d elements are cached, want the new list only", len(c.tenants), c.size)
		}
	})
}

// TestCacheAfterAPanic: a load that panics leaves nobody waiting, and the next caller loads again.
func TestCacheAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls := newCache[int](time.Hour), 0
		begun, wait := make(chan struct{}), make(chan struct{})
		go func() {
			defer func() { _ = recover() }()
			_, _ = c.get(t.Context(), acme, "list", func(context.Context) (int, int, error) {
				close(begun)
				<-wait
				panic("loads")
			})
		}()
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waits := make(chan error, 1)
		go func() { waits <- second(c.get(ctx, acme, "list", load(1, &calls))) }()
		synctest.Wait()
		close(wait)
		if err := <-waits; err == nil || ctx.Err() != nil {
			t.Errorf("the caller that waits: %v, want an error at once", err)
		}
		if _, err := c.get(ctx, acme, "list", load(1, &calls)); err != nil || calls != 1 {
			t.Errorf("the next caller: %v after %d loads, want its own list", err, calls)
		}
	})
}
