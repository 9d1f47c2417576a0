package buffer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// check compares the buffer's counters with its contents. granted is how many callers may have room for items that they
// have not added yet.
func (q *Buffer) check(t *testing.T, granted int) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	claimed := map[uint64]int{}
	claim := func(where string, it *Item) {
		if claimed[it.hash]++; !it.claimed || claimed[it.hash] > 1 {
			t.Errorf("%s in %s: claimed %v, by %d", it.Key, where, it.claimed, claimed[it.hash])
		}
		if _, ok := q.rows[it.hash]; !ok {
			t.Errorf("%s in %s has no row", it.Key, where)
		}
	}
	timed := func(where string, it *Item) {
		if q.opts.Delivery > 0 && (q.expiry.IsZero() || q.expiry.After(it.arrived.Add(q.opts.Delivery))) {
			t.Errorf("the expiry time is after the deadline of %s in %s", it.Key, where)
		}
	}
	inflight := map[*lane]int{}
	for b := range q.inFlight {
		for _, it := range b.items {
			claim("flight", it)
		}
		for _, l := range b.lanes {
			inflight[l]++
		}
	}
	for _, g := range q.retries {
		for _, it := range g.items {
			claim("retry", it)
			timed("retry", it)
		}
	}
	waiting, held, heldBytes, ringed := 0, 0, int64(0), 0
	for id, l := range q.lanes {
		n, bytes, muts := 0, 0, 0
		for _, list := range []list{l.front, l.queue} {
			for it := list.head; it != nil; it = it.next {
				n, bytes, muts = n+1, bytes+it.Bytes, muts+int(it.Mutations)
				timed("lane", it)
				if it.claimed {
					t.Errorf("%s waits although it holds its row", it.Key)
				}
			}
		}
		if n != l.waiting || bytes != l.bytes || muts != l.muts {
			t.Errorf("lane %v: %d items of %d bytes and %d mutations, counted %d, %d, %d", id, n, bytes, muts, l.waiting, l.bytes, l.muts)
		}
		for _, c := range l.chunks {
			if len(c) == 0 {
				t.Errorf("lane %v has an empty chunk", id)
			}
			for _, it := range c {
				claim("chunk", it)
				timed("chunk", it)
			}
		}
		if l.inRing == l.empty() {
			t.Errorf("lane %v: in the ring %v, empty %v", id, l.inRing, l.empty())
		}
		if l.inRing {
			ringed++
		}
		if l.inflight != inflight[l] {
			t.Errorf("lane %v: %d in flight, counted %d", id, inflight[l], l.inflight)
		}
		if l.held == 0 && len(l.blocked) == 0 {
			t.Errorf("lane %v is empty and was not dropped", id)
		}
		waiting, held, heldBytes = waiting+n, held+l.held, heldBytes+l.heldBytes
	}
	for _, behind := range q.rows {
		if behind != nil && behind.head != nil {
			timed("row", behind.head)
		}
	}
	open := 0
	for _, g := range q.gens {
		open += g.open
	}
	if waiting != q.waiting || held != q.held || heldBytes != q.heldBytes || ringed != q.ring.n || len(claimed) != len(q.rows) || open > held || open < held-granted {
		t.Errorf("waiting %d, counted %d; held %d of %d bytes, counted %d of %d; ring %d, counted %d; %d rows for %d items; %d open",
			waiting, q.waiting, held, heldBytes, q.held, q.heldBytes, ringed, q.ring.n, len(q.rows), len(claimed), open)
	}
	if q.held > q.opts.BufferEntries || len(q.inFlight) > q.opts.InFlight {
		t.Errorf("%d held, %d in flight", q.held, len(q.inFlight))
	}
}

var lives = flag.Int("ingest.lives", 20, "number of random runs of a buffer to check")

// TestRandomOperations runs random operations at once, and checks the buffer's invariants meanwhile.
func TestRandomOperations(t *testing.T) {
	for seed := uint64(0); seed < uint64(*lives); seed += uint64(testkit.Stride(4)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomOperations(t, seed) })
		})
	}
}

func randomOperations(t *testing.T, seed uint64) {
	const producers = 6
	rnd := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	roll := func(n int) int { mu.Lock(); defer mu.Unlock(); return rnd.IntN(n) }
	s := &service{t: t, takes: time.Duration(1+roll(30)) * time.Millisecond}
	s.verdict = func(it *Item) error {
		switch n := roll(60); {
		case it.Bytes == 7:
			return errBad
		case n == 0:
			return errBad
		case n < 4:
			return errBusy
		case n < 6:
			return errLost
		}
		return nil
	}
	s.whole = func(items []*Item) (Report, error) {
		poison := slices.ContainsFunc(items, func(it *Item) bool { return it.Bytes == 7 })
		switch n := roll(30); {
		case poison:
			return Report{Suspect: len(items) > 1}, errBad
		case n < 3:
			return Report{Down: true, Err: errBusy}, errBusy
		case n < 5:
			return Report{Down: true, Err: errLost}, errLost
		case n == 5:
			return Report{Overload: true, Wait: time.Duration(roll(300)) * time.Millisecond}, errBusy
		}
		return Report{}, nil
	}
	opts := options()
	opts.BufferEntries, opts.BufferBytes, opts.InFlight = 50+roll(300), 20000, 1+roll(6)
	opts.Linger = time.Duration(roll(3)) * 5 * time.Millisecond
	if roll(2) == 0 {
		opts.Delivery = time.Duration(100+roll(2000)) * time.Millisecond
	}
	freed := 0
	opts.Free = func(it *Item) { // what still refers to the item finds garbage
		freed++
		*it = Item{Tenant: "freed", Key: "freed", Bytes: -1}
	}
	q := New(s, opts)
	var ended outcomes
	ended.t = t
	keys := 1 + roll(200)
	done := func(it *Item, out bt.Outcome) {
		ended.done(it, out)
		took := time.Since(it.arrived)
		if errors.Is(out.Err, ErrTimeout) && took < opts.Delivery {
			t.Errorf("%s ended after %v, before its deadline", it.Key, took)
		}
		if opts.Delivery > 0 && took > opts.Delivery+s.takes {
			t.Errorf("%s ended after %v, long after its deadline: %+v", it.Key, took, out)
		}
		if (out.Err == nil) != (out.State == bt.Stored) {
			t.Errorf("%+v", out)
		}
	}
	var taken int
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for range 300 {
				tenant := string(rune('a' + p%3))
				key := roll(keys)
				it := &Item{Tenant: tenant, Key: fmt.Sprintf("%s%d", tenant, key), Bytes: 50 + roll(100), Mutations: int32(1 + roll(3)), Alone: tenant == "c" && key%3 > 0}
				switch roll(100) {
				case 0:
					it.Bytes = 7
				case 1:
					it.Bytes = 20000
				}
				it.Done = done
				var err error
				if roll(4) == 0 {
					err = q.TryEnqueue(it)
				} else {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+roll(200))*time.Millisecond)
					err = q.Enqueue(ctx, it)
					cancel()
				}
				mu.Lock()
				if err == nil {
					taken++
				} else if !errors.Is(err, ErrFull) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				mu.Unlock()
				if roll(3) == 0 {
					time.Sleep(time.Duration(roll(20)) * time.Millisecond)
				}
				if roll(50) == 0 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+roll(2000))*time.Millisecond)
					_ = q.Flush(ctx)
					cancel()
				}
				q.check(t, producers)
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+roll(5000))*time.Millisecond)
	defer cancel()
	if roll(2) == 0 {
		ctx = t.Context()
	}
	for range 2 {
		all.Go(func() { _ = q.Close(ctx) })
	}
	all.Wait()
	synctest.Wait()
	q.check(t, 0)
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if len(ended.seen) != taken {
		t.Errorf("got %d of %d items ended", len(ended.seen), taken)
	}
	if freed != taken {
		t.Errorf("got %d of %d items freed", freed, taken)
	}
	st := q.Stats()
	if st.Entries != 0 || st.Bytes != 0 || len(q.lanes) != 0 || len(q.rows) != 0 || q.ring.n != 0 || len(q.retries) != 0 || len(q.gens) != 1 || len(q.flushes) != 0 || len(q.blocked) != 0 {
		t.Errorf("empty buffer: got %+v", q)
	}
	t.Logf("%d taken, %d stored, %d rejected, %d unknown, %d requests", taken, st.Stored, st.Rejected, st.Unknown, st.Requests)
}
