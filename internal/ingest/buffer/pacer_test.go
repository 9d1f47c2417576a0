package buffer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// limited is a service that gives advice. It counts the bytes that it gets in each second.
type limited struct {
	*service
	begin   time.Time
	seconds []int
	tenants map[string]int
}

// newLimited returns a service whose requests take 5 ms. advice is called for each response, with the time since the
// beginning.
func newLimited(t *testing.T, advice func(time.Duration) bt.RateLimit) *limited {
	l := &limited{service: &service{t: t, takes: 5 * time.Millisecond}, begin: time.Now(), tenants: map[string]int{}}
	l.whole = func(items []*Item) (Report, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		after := time.Since(l.begin)
		for len(l.seconds) <= int(after/time.Second) {
			l.seconds = append(l.seconds, 0)
		}
		l.seconds[after/time.Second] += bytesOf(items)
		for _, it := range items {
			l.tenants[it.Tenant]++
		}
		return Report{Limit: advice(after)}, nil
	}
	return l
}

// rate returns the bytes a second that arrived from one second to another.
func (l *limited) rate(from, to int) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := 0
	for n := from; n < min(to, len(l.seconds)); n++ {
		sum += l.seconds[n]
	}
	return float64(sum) / float64(to-from)
}

func (l *limited) tenant(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tenants[name]
}

// limitedOptions are small batches and a buffer that is never full.
func limitedOptions() Options {
	o := options()
	o.FlowControl, o.InFlight, o.BufferEntries, o.BufferBytes, o.Delivery = true, 16, 1<<20, 1<<30, 0
	return o
}

// offer enqueues items of 1 KB at a steady rate, until the given time since the beginning of the service.
func (l *limited) offer(q *Buffer, perSecond int, until time.Duration, tenants ...string) (n int) {
	l.t.Helper()
	for time.Since(l.begin) < until {
		for range max(1, perSecond/100) {
			it := item(tenants[n%len(tenants)], fmt.Sprintf("%s-%09d", tenants[n%len(tenants)], n))
			it.Bytes = 1000
			if err := q.Enqueue(l.t.Context(), it); err != nil {
				l.t.Fatal(err)
			}
			n++
		}
		time.Sleep(10 * time.Millisecond)
	}
	return n
}

func (l *limited) close(q *Buffer, want int) {
	l.t.Helper()
	if err := q.Close(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	if s := q.Stats(); s.Stored != uint64(want) || s.Rejected+s.Unknown > 0 {
		l.t.Errorf("got %+v, want %d stored", s, want)
	}
}

// within checks a rate, up to a sixth more or less.
func within(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got < want*5/6 || got > want*7/6 {
		t.Errorf("%s: got %.0f bytes a second, want about %.0f", what, got, want)
	}
}

// TestAdviceLowersTheRate checks that a factor of 0.7 in each response lowers the rate once a period of 10 s, and not
// with each response: it is halved after the second. A factor of 1.3 raises it again.
func TestAdviceLowersTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, func(after time.Duration) bt.RateLimit {
			switch {
			case after < 10*time.Second:
				return bt.RateLimit{}
			case after < 35*time.Second: // in effect from second 10, 20 and 30 on
				return bt.RateLimit{Factor: 0.7, Period: 10 * time.Second}
			}
			return bt.RateLimit{Factor: 1.3, Period: 10 * time.Second} // from second 40, 50 and 60 on
		})
		q := New(l, limitedOptions())
		n := l.offer(q, 2000, 70*time.Second, "a")
		const offered = 2e6
		within(t, "without advice", l.rate(0, 10), offered)
		for i, factor := range []float64{0.7, 0.49, 0.343, 0.343 * 1.3, 0.343 * 1.69, 0.343 * 2.197} {
			at := 10 * (i + 1)
			within(t, fmt.Sprintf("from second %d on", at), l.rate(at+1, at+10), offered*factor)
		}
		if got := float64(q.Stats().Rate); got < offered*0.6 || got > offered {
			t.Errorf("got a limit of %.0f in the statistics", got)
		}
		l.close(q, n)
	})
}

// TestLimitEndsInSilence checks that a limit ends when the service gives no more advice, and that the statistics agree.
func TestLimitEndsInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, func(after time.Duration) bt.RateLimit {
			if after < 12*time.Second {
				return bt.RateLimit{Factor: 0.7, Period: 10 * time.Second}
			}
			return bt.RateLimit{}
		})
		q := New(l, limitedOptions())
		n := l.offer(q, 2000, 60*time.Second, "a")
		if got := q.Stats().Rate; got != 0 {
			t.Errorf("got a limit of %d after the service was silent for 48 s", got)
		}
		if low := l.rate(12, 41); low > 1.1e6 {
			t.Errorf("got %.0f bytes a second until silence was long enough, want about half of 2,000,000", low)
		}
		within(t, "what waited and what arrives", l.rate(40, 60)*20, 20*2e6+27*1e6)
		l.close(q, n)
	})
}

// TestLowestAdviceStopsNothing checks that a service that always says the least leaves a floor, and that Flush and
// Close end.
func TestLowestAdviceStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, func(time.Duration) bt.RateLimit { return bt.RateLimit{Factor: 0.7, Period: time.Second} })
		q := New(l, limitedOptions())
		n := l.offer(q, 100, 5*time.Minute, "a")
		if got := l.rate(100, 300); got < leastRate*9/10 {
			t.Errorf("got %.0f bytes a second, want at least %d", got, leastRate)
		}
		if got := q.Stats().Rate; got != leastRate {
			t.Errorf("got a limit of %d, want %d", got, leastRate)
		}
		if err := q.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.close(q, n)
	})
}

// TestLargeBatchesGoAtTheFloor checks that even the largest batches go at longestPace apart, at any rate.
func TestLargeBatchesGoAtTheFloor(t *testing.T) {
	p, now := pacer{}, time.Now()
	p.launched(now, 1<<20)
	for range 100 {
		p.advise(now, bt.RateLimit{Factor: 0.7, Period: time.Second})
		now = now.Add(time.Second)
	}
	p.launched(now, 100<<20)
	if got := p.until().Sub(now); got > longestPace || got < longestPace/2 {
		t.Errorf("got a pause of %v after a batch of 100 MiB at %v bytes a second, want about %v", got, p.rate, longestPace)
	}
}

// TestUnusedLimit checks advice to a writer that sends much less than its limit allows: less raises nothing, and a
// lower factor applies to what the writer sends. Advice above 1 without a limit sets none.
func TestUnusedLimit(t *testing.T) {
	p, now := pacer{}, time.Now()
	send := func(seconds, bytes int) {
		for range seconds {
			now = now.Add(time.Second)
			p.launched(now, bytes)
		}
	}
	send(20, 1e6)
	if p.advise(now, bt.RateLimit{Factor: 1.3, Period: 10 * time.Second}); p.rate != 0 {
		t.Errorf("got a limit of %v after advice to send more", p.rate)
	}
	p.advise(now, bt.RateLimit{Factor: 0.7, Period: 10 * time.Second})
	if p.rate != 0.7e6 {
		t.Fatalf("got %v, want %v", p.rate, 0.7e6)
	}
	send(11, 0.1e6)
	if p.advise(now, bt.RateLimit{Factor: 1.2, Period: 10 * time.Second}); p.rate != 0.7e6*1.2 {
		t.Errorf("got %v, want %v", p.rate, 0.7e6*1.2)
	}
	send(11, 0.1e6)
	if p.advise(now, bt.RateLimit{Factor: 0.7, Period: 10 * time.Second}); p.rate != 0.07e6 {
		t.Errorf("got %v, want 0.7 of the load, %v", p.rate, 0.07e6)
	}
	send(1, 0)
	now = now.Add(time.Hour)
	p.launched(now, 1000)
	if p.advise(now, bt.RateLimit{Factor: 0.7, Period: 10 * time.Second}); p.rate != 0 {
		t.Errorf("got %v for the first batch after an hour, want no limit before the load is known", p.rate)
	}
	now = now.Add(time.Second)
	p.launched(now, 1e6)
	now = now.Add(time.Second)
	if p.advise(now, bt.RateLimit{Factor: 0.7, Period: 10 * time.Second}); p.rate != 0.7e6 {
		t.Errorf("got %v a second later, want %v", p.rate, 0.7e6)
	}
}

// TestLimitIsShared checks that under a limit a hundred tenants send equal parts, although one of them offers ten times
// as much.
func TestLimitIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, func(time.Duration) bt.RateLimit { return bt.RateLimit{Factor: 0.7, Period: 10 * time.Second} })
		opts := limitedOptions()
		opts.BatchEntries = 20
		q := New(l, opts)
		var tenants []string
		for i := range 100 {
			tenants = append(tenants, fmt.Sprintf("t%02d", i))
		}
		stop := make(chan int)
		go func() { stop <- l.offer(q, 3000, 60*time.Second, "noisy") }()
		n := l.offer(q, 300, 60*time.Second, tenants...)
		least, most := n, 0
		for _, name := range tenants {
			least, most = min(least, l.tenant(name)), max(most, l.tenant(name))
		}
		t.Logf("after 60 s: %d to %d points of each quiet tenant of %d offered, %d of the noisy one", least, most, n/100, l.tenant("noisy"))
		if least < n/100*9/10 {
			t.Errorf("a quiet tenant has %d of %d points stored", least, n/100)
		}
		l.close(q, n+<-stop)
	})
}

// TestNoFlowControl checks that a buffer without FlowControl measures nothing.
func TestNoFlowControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimited(t, func(time.Duration) bt.RateLimit { return bt.RateLimit{} })
		opts := limitedOptions()
		opts.FlowControl = false
		q := New(l, opts)
		n := l.offer(q, 100, 3*time.Second, "a")
		if q.gov.pacer != (pacer{}) {
			t.Errorf("got %+v", q.gov.pacer)
		}
		l.close(q, n)
	})
}
