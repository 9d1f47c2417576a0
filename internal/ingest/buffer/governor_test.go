package buffer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// TestMixedSizesAreNoCrowd checks that a large batch that takes longer than a small one does not make the service count
// as crowded.
func TestMixedSizesAreNoCrowd(t *testing.T) {
	g := newGovernor(16)
	at := time.Now()
	for range 200 {
		for _, kib := range []int{1, 4000} {
			took := time.Duration(5+kib/20) * time.Millisecond
			g.note(at, at.Add(took), sizeOf(kib<<10, false), Report{}, true)
			at = at.Add(took)
		}
	}
	if g.slots() != 16 {
		t.Errorf("got %d slots after batches of two sizes at their usual speed", g.slots())
	}
	for range 50 {
		g.note(at, at.Add(2*time.Second), sizeOf(4000<<10, false), Report{}, true)
		at = at.Add(2 * time.Second)
	}
	if g.slots() > 8 {
		t.Errorf("got %d slots although batches take ten times as long", g.slots())
	}
}

// TestSendingResumesAfterAnAnswer checks that sending resumes once the service has answered, without a wait for the
// next probe. Only a pause that the service asked for still applies.
func TestSendingResumesAfterAnAnswer(t *testing.T) {
	g := newGovernor(4)
	begin := time.Now()
	now := begin
	for range 30 {
		now = now.Add(10 * time.Second)
		g.note(now, now, 0, Report{Down: true, Err: errBusy}, false)
	}
	if !g.until.After(now) || g.slots() != 1 {
		t.Fatalf("while down: got a pause until %v and %d slots", g.until, g.slots())
	}
	g.note(begin, now, 0, Report{}, false)
	if g.until.After(now) || g.down != nil {
		t.Errorf("after an answer: got a pause of %v, want none", g.until.Sub(now))
	}
	g.note(now, now, 0, Report{Overload: true, Wait: 5 * time.Second}, false)
	g.note(begin, now, 0, Report{}, false)
	if got := g.until.Sub(now); got != 5*time.Second {
		t.Errorf("got a pause of %v, want the 5 s that the service asked for", got)
	}
	g.note(now, now, 0, Report{Overload: true, Wait: 1000 * time.Hour}, false)
	if got := g.until.Sub(now); got != longestWait {
		t.Errorf("got a pause of %v", got)
	}
}

// TestBackFromAnOutage checks that a full buffer is sent again soon after an outage.
func TestBackFromAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &service{t: t, takes: 20 * time.Millisecond}
		s.whole = func([]*Item) (Report, error) {
			if d := time.Since(begin); d > 10*time.Second && d < time.Hour {
				return Report{Down: true, Err: errBusy}, errBusy
			}
			return Report{}, nil
		}
		opts := options()
		opts.InFlight = 16
		q := New(s, opts)
		var ended outcomes
		ended.t = t
		n := 0
		for ; time.Since(begin) < time.Hour-time.Minute; n++ {
			it := item("a", fmt.Sprint(n))
			it.Done = ended.done
			if err := q.Enqueue(t.Context(), it); err != nil {
				break
			}
			if time.Since(begin) > 10*time.Second && q.Stats().Entries > 850 {
				break
			}
		}
		time.Sleep(time.Until(begin.Add(time.Hour)))
		back := time.Now()
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d items, all stored %v after the outage; %d requests, %d of them repeated", n, time.Since(back), q.Stats().Requests, q.Stats().Retries)
		if took := time.Since(back); took > 2*longestProbe {
			t.Errorf("got all items stored after %v", took)
		}
		if got := ended.count(bt.Stored); got != n+1 {
			t.Errorf("got %d of %d items stored", got, n+1)
		}
	})
}

// TestSlotsGrowForOneTenant checks that the limit of requests grows if a single tenant could use more of them, although
// a slot stays free for other tenants all the time.
func TestSlotsGrowForOneTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: 20 * time.Millisecond}
		opts := options()
		opts.InFlight = 16
		q := New(s, opts)
		for n := range 30_000 {
			if err := q.Enqueue(t.Context(), item("a", fmt.Sprint(n))); err != nil {
				t.Fatal(err)
			}
		}
		if got := q.Stats().Slots; got < 12 {
			t.Errorf("got %d slots after 30,000 items of one tenant, want nearly 16", got)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestQueueingAddsNoSlots checks that the limit does not grow if attempts only wait behind each other, and that it
// comes back when they begin to.
func TestQueueingAddsNoSlots(t *testing.T) {
	g, at := newGovernor(16), time.Now()
	most := 0
	attempt := func(took time.Duration) {
		g.note(at, at.Add(took), sizeOf(100<<10, false), Report{}, true)
		at = at.Add(took)
	}
	for range 2000 {
		attempt(time.Duration(g.slots()-1) * 3 * time.Millisecond)
		most = max(most, g.slots())
	}
	if most > 8 {
		t.Errorf("got up to %d slots although each makes all attempts slower", most)
	}
	for range 200 {
		attempt(3 * time.Millisecond)
	}
	if g.slots() < 12 {
		t.Errorf("got %d slots although more of them make no attempt slower", g.slots())
	}
	for range 200 {
		attempt(20 * time.Millisecond)
	}
	if g.slots() > firstSlots {
		t.Errorf("got %d slots after attempts became slower, want %d", g.slots(), firstSlots)
	}
}
