package buffer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// put adds an item. It returns a function that waits for its end and returns when and how it ended.
func put(t *testing.T, q *Buffer, it *Item) func() (time.Duration, bt.Outcome) {
	t.Helper()
	begin := time.Now()
	var took time.Duration
	var got bt.Outcome
	it.Done = func(_ *Item, out bt.Outcome) { took, got = time.Since(begin), out }
	if err := q.Enqueue(t.Context(), it); err != nil {
		t.Fatal(err)
	}
	return func() (time.Duration, bt.Outcome) {
		t.Helper()
		synctest.Wait()
		if got.State == 0 {
			t.Errorf("%s did not end", it.Key)
		}
		return took, got
	}
}

// TestEachItemHasItsDeadline checks that an item whose deadline passes while its row is taken ends then, and that no
// other item does.
func TestEachItemHasItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: 30 * time.Second}
		opts := options()
		opts.Delivery, opts.Request, opts.InFlight = 10*time.Second, time.Minute, 1
		q := New(s, opts)
		flying := put(t, q, item("a", "row"))
		time.Sleep(time.Second)
		waits := put(t, q, item("a", "row"))
		time.Sleep(5 * time.Second)
		other := put(t, q, item("a", "other"))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if took, out := waits(); took != opts.Delivery || !errors.Is(out.Err, ErrTimeout) || out.State != bt.Rejected {
			t.Errorf("item that waits for its row: got its end after %v: %+v", took, out)
		}
		if took, out := other(); took != opts.Delivery || !errors.Is(out.Err, ErrTimeout) {
			t.Errorf("item of another row: got its end after %v: %+v", took, out)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, out := flying(); out.State != bt.Stored {
			t.Errorf("item in flight: got %+v", out)
		}
	})
}

// TestDeadlinesOfWaitingItems checks that an item that waits for its row, or that a later item has coalesced, ends at
// its own deadline.
func TestDeadlinesOfWaitingItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: time.Second, whole: func([]*Item) (Report, error) {
			return Report{Down: true, Err: errBusy}, errBusy
		}}
		opts := options()
		opts.Delivery, opts.Request = time.Minute, time.Minute
		q := New(s, opts)
		flying := put(t, q, item("a", "row"))
		time.Sleep(time.Second)
		var ends []func() (time.Duration, bt.Outcome)
		for range 10 {
			ends = append(ends, put(t, q, item("a", "row")))
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Minute)
		if _, out := flying(); out.State != bt.Rejected {
			t.Errorf("first item: got %+v", out)
		}
		for i, end := range ends {
			// An item that is in flight at its deadline ends when its attempt ends.
			if took, out := end(); took < opts.Delivery || took > opts.Delivery+s.takes || !errors.Is(out.Err, ErrTimeout) {
				t.Errorf("item %d: got its end after %v: %+v", i, took, out)
			}
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRefusedWriteReplacesNothing checks that the earlier writes that a refused write has coalesced are sent after all.
func TestRefusedWriteReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: time.Second, verdict: func(it *Item) error {
			if it.Work == 4 || it.Work == 3 {
				return errBad
			}
			return nil
		}}
		q := New(s, options())
		var ends []func() (time.Duration, bt.Outcome)
		for n := range 5 {
			it := item("a", "row")
			it.Work = n
			ends = append(ends, put(t, q, it))
			time.Sleep(100 * time.Millisecond)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n, end := range ends {
			want := bt.Stored
			if n >= 3 {
				want = bt.Rejected
			}
			if _, out := end(); out.State != want {
				t.Errorf("write %d: got %+v, want state %d", n, out, want)
			}
		}
		if got := s.order["row"]; !slices.Equal(got, []int{0, 2}) {
			t.Errorf("the service applied %v", got)
		}
	})
}

// TestDependentWriteReplacesNothing checks that a write that depends on its row's contents is sent after the one before
// it, not instead of it.
func TestDependentWriteReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: time.Second}
		q := New(s, options())
		for n := range 3 {
			it := item("a", "row")
			it.Work, it.Alone = n, n == 2
			if err := q.Enqueue(t.Context(), it); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.order["row"]; !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("the service applied %v", got)
		}
	})
}

// TestHotRow checks that a hundred thousand waiting writes of one row cost no more time than those of many rows.
func TestHotRow(t *testing.T) {
	const n = 100_000
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: time.Second}
		opts := options()
		opts.BufferEntries, opts.BufferBytes = 2*n, 1<<40
		q := New(s, opts)
		var ended outcomes
		ended.t = t
		for i := range n {
			it := item("a", "row")
			it.Work, it.Done = i, ended.done
			if err := q.Enqueue(t.Context(), it); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.order["row"]; ended.count(bt.Stored) != n || got[len(got)-1] != n-1 || len(got) > 3 {
			t.Errorf("got %d stored and %d sent", ended.count(bt.Stored), len(got))
		}
	})
}

func TestBufferWithoutBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := options()
		opts.BufferEntries, opts.BufferBytes = math.MaxInt, math.MaxInt64
		q := New(&service{t: t, takes: time.Second}, opts)
		for i := range 1000 {
			if err := q.TryEnqueue(item("a", fmt.Sprint(i))); err != nil {
				t.Fatalf("item %d: %v", i, err)
			}
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCloseOfAnEmptyBuffer checks that Close of an empty buffer returns nil even if the context has ended.
func TestCloseOfAnEmptyBuffer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if err := New(&service{t: t}, options()).Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
