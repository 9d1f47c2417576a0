package buffer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// quiet adds n items of a tenant at a steady rate. It returns how long each took from Enqueue to its end, sorted.
func quiet(t *testing.T, q *Buffer, tenant string, n int, every time.Duration) []time.Duration {
	t.Helper()
	took := make(chan time.Duration, n)
	for i := range n {
		it := item(tenant, fmt.Sprintf("%s%06d", tenant, i))
		begin := time.Now()
		it.Done = func(_ *Item, out bt.Outcome) {
			if out.State != bt.Stored {
				t.Errorf("%+v", out)
			}
			took <- time.Since(begin)
		}
		if err := q.Enqueue(t.Context(), it); err != nil {
			t.Fatal(err)
		}
		time.Sleep(every)
	}
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = <-took
	}
	slices.Sort(all)
	return all
}

// TestFairness checks that one tenant's p99 stays within twice its p99 alone while another tenant offers a hundred
// times the load, far more than the service takes. Each request takes 20 ms, whatever its size.
func TestFairness(t *testing.T) {
	for _, slots := range []int{1, 2, 4, 16} {
		t.Run(fmt.Sprintf("slots=%d", slots), func(t *testing.T) {
			testkit.OneOf(t, slots == 4)
			p99 := func(flood bool) (at time.Duration) {
				synctest.Test(t, func(t *testing.T) {
					s := &service{t: t, takes: 20 * time.Millisecond}
					opts := options()
					opts.InFlight = slots
					q := New(s, opts)
					ctx, stop := context.WithCancel(t.Context())
					ended := make(chan int)
					go func() {
						n := 0
						for ; flood && ctx.Err() == nil; n++ {
							// A hundred items for each item of the other tenant, until the buffer blocks the caller.
							if err := q.Enqueue(ctx, item("noisy", fmt.Sprintf("noisy%09d", n))); err != nil && !errors.Is(err, context.Canceled) {
								t.Error(err)
							}
							if n%100 == 99 {
								time.Sleep(10 * time.Millisecond)
							}
						}
						ended <- n
					}()
					time.Sleep(time.Second)
					all := quiet(t, q, "quiet", 1000, 10*time.Millisecond)
					at = all[len(all)*99/100]
					stop()
					n := <-ended
					t.Logf("p50 %v, p99 %v, most %v; the noisy tenant put %d", all[len(all)/2], at, all[len(all)-1], n)
					if err := q.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
				})
				return at
			}
			alone, during := p99(false), p99(true)
			if during > 2*alone {
				t.Errorf("got p99 %v while another tenant floods, %v alone", during, alone)
			}
		})
	}
}

// TestOneTenantCannotFillTheBuffer checks that a new tenant gets room at once, whatever others hold.
func TestOneTenantCannotFillTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: time.Hour}
		q := New(s, options())
		held := map[string]int{}
		for _, tenant := range []string{"a", "b", "c", "d"} {
			for i := 0; ; i++ {
				if err := q.TryEnqueue(item(tenant, fmt.Sprintf("%s%06d", tenant, i))); errors.Is(err, ErrFull) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				held[tenant]++
			}
			if held[tenant] == 0 {
				t.Errorf("got no room for %s while others hold %v", tenant, held)
			}
		}
		if held["a"] < 800 || held["a"] > 900 {
			t.Errorf("got %d of 1000 items of one tenant alone, want about 7/8", held["a"])
		}
		t.Log(held)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Close(ctx); err == nil {
			t.Error("Close under an ended context: got nil, want an error")
		}
	})
}

// TestRoomIsGivenInTurns checks that waiting callers of several tenants get room in turns, and that small items do not
// starve a large one.
func TestRoomIsGivenInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: 10 * time.Millisecond}
		opts := options()
		opts.BufferBytes, opts.BufferEntries, opts.InFlight = 4000, 1000, 1
		q := New(s, opts)
		ctx, stop := context.WithCancel(t.Context())
		for _, tenant := range []string{"a", "b", "c"} {
			for w := range 5 {
				go func() {
					for i := 0; ctx.Err() == nil; i++ {
						if err := q.Enqueue(ctx, item(tenant, fmt.Sprintf("%s%d-%06d", tenant, w, i))); err != nil && !errors.Is(err, context.Canceled) {
							t.Error(err)
						}
					}
				}()
			}
		}
		time.Sleep(time.Second)
		large := item("d", "large")
		large.Bytes = 4000
		begin := time.Now()
		if err := q.Enqueue(ctx, large); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("an item as large as the buffer waited %v", took)
		}
		stop()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRoomComesAtTheLastMoment: callers get room at the moment at which their contexts end, or at which the buffer is
// closed. They take it or give it back; none of it is lost.
func TestRoomComesAtTheLastMoment(t *testing.T) {
	for _, closed := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := options()
				opts.BufferEntries = 1
				q := New(&service{t: t, takes: time.Second}, opts)
				if err := q.Enqueue(t.Context(), item("a", "first")); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 20)
				for i := range 20 {
					go func() { ended <- q.Enqueue(ctx, item("b", fmt.Sprintf("%02d", i))) }()
				}
				synctest.Wait()
				q.mu.Lock()
				q.opts.BufferEntries = 1000
				q.grant()
				if q.held != 21 {
					t.Errorf("got room for %d items, want 21", q.held)
				}
				var want error
				if cancel(); closed {
					want, q.closed = ErrClosed, true
					close(q.closing)
				}
				q.mu.Unlock()
				for range 20 {
					if err := <-ended; !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				}
				if err := q.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if st := q.Stats(); st.Entries != 0 || st.Bytes != 0 || len(q.lanes) != 0 {
					t.Errorf("a closed buffer holds %d items of %d bytes in %d lanes", st.Entries, st.Bytes, len(q.lanes))
				}
			})
		})
	}
}

// TestBytesOfANewTenant: a tenant that holds nothing gets no more bytes than are free, and Freed says when more are.
func TestBytesOfANewTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := options()
		opts.BufferBytes, opts.Freed = 4000, make(chan struct{}, 1)
		q := New(&service{t: t, takes: time.Second}, opts)
		first, large := item("a", "first"), item("b", "large")
		first.Bytes, large.Bytes = 2000, 3000
		if err := q.TryEnqueue(first); err != nil {
			t.Fatal(err)
		}
		if err := q.TryEnqueue(large); !errors.Is(err, ErrFull) {
			t.Errorf("got %v for 3000 bytes while 2000 of 4000 are free, want %v", err, ErrFull)
		}
		select {
		case <-opts.Freed:
		case <-time.After(time.Minute):
			t.Error("nobody was told of the room that became free")
		}
		if err := q.TryEnqueue(large); err != nil {
			t.Errorf("got %v for 3000 bytes of 4000", err)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRoomBehindACallerThatLeaves: an item as large as the buffer fits into an empty one. A caller that gives up
// waiting for room leaves the free room to those behind it, at once.
func TestRoomBehindACallerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := options()
		opts.BufferBytes = 4000
		q := New(&service{t: t, takes: time.Hour}, opts)
		huge := item("a", "huge")
		huge.Bytes = 5000
		if err := q.TryEnqueue(huge); err != nil {
			t.Errorf("an item larger than the buffer: %v, want room in an empty one", err)
		}
		if err := q.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		held, large := item("a", "held"), item("b", "large")
		held.Bytes, large.Bytes = 2000, 3000
		if err := q.TryEnqueue(held); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		left := make(chan error, 1)
		go func() { left <- q.Enqueue(ctx, large) }()
		synctest.Wait()
		if err := q.Enqueue(t.Context(), item("b", "small")); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("a small item waited %v for room, want the second after which the large one left", took)
		}
		if err := <-left; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the large item: %v, want DeadlineExceeded", err)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSharing: several tenants write as long as their items are near each other. A single tenant's callers never yield.
func TestSharing(t *testing.T) {
	var s Sharing
	add := func(tenant string, n int, want bool) {
		t.Helper()
		for range n {
			if got := s.Add(tenant); got != want {
				t.Fatalf("item %d, of %s: several tenants write: %v, want %v", s.items, tenant, got, want)
			}
		}
	}
	add("loud", 1000, false)
	add("quiet", 1, true)
	add("loud", sharedFor-1, true)
	add("loud", 1000, false)
	add("quiet", 1, true)
	add("loud", 1, true)
}
