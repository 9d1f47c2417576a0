package buffer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/internal/bt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a Sender that records what it is sent. Its requests take a fixed time; it serves one at a time or several.
type service struct {
	t     *testing.T
	takes time.Duration
	// verdict returns the error of one item; nil means stored.
	verdict func(*Item) error
	// whole returns the result of a whole request; nil means served.
	whole func([]*Item) (Report, error)

	mu       sync.Mutex
	requests [][]string
	flying   map[string]bool
	most     int
	now      int
	order    map[string][]int
}

func (s *service) Send(ctx context.Context, items []*Item) (r Report) {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	if s.flying == nil {
		s.flying, s.order = map[string]bool{}, map[string][]int{}
	}
	keys := make([]string, len(items))
	for i, it := range items {
		keys[i] = it.Key
		if s.flying[it.Key] {
			s.t.Errorf("row %s is in flight twice", it.Key)
		}
		s.flying[it.Key] = true
		if i > 0 && it.Key <= keys[i-1] {
			s.t.Errorf("rows %s and %s are not in order", keys[i-1], it.Key)
		}
		if it.Alone != items[0].Alone {
			s.t.Error("a batch mixes items that go alone with others")
		}
	}
	s.requests = append(s.requests, keys)
	s.mu.Unlock()

	var err error
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil && s.whole != nil {
		r, err = s.whole(items)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	for _, it := range items {
		delete(s.flying, it.Key)
		cause := err
		if cause == nil && s.verdict != nil {
			cause = s.verdict(it)
		}
		it.Track.Note(cause, errors.Is(cause, errLost))
		it.Retry = errors.Is(cause, errBusy) || errors.Is(cause, errLost) || r.Suspect
		if n, ok := it.Work.(int); ok && cause == nil {
			s.order[it.Key] = append(s.order[it.Key], n)
		}
	}
	return r
}

var (
	errBusy = errors.New("busy")
	errLost = errors.New("lost")
	errBad  = errors.New("bad")
)

func options() Options {
	return Options{
		BatchEntries: 10, BatchMutations: 1000, BatchBytes: 1 << 20, AloneEntries: 4, Linger: 5 * time.Millisecond,
		BufferEntries: 1000, BufferBytes: 1 << 20, InFlight: 4, Request: 10 * time.Second,
	}
}

func item(tenant, key string) *Item { return &Item{Tenant: tenant, Key: key, Bytes: 100, Mutations: 1} }

// outcomes counts how items ended, and fails the test if one ends twice.
type outcomes struct {
	t    *testing.T
	mu   sync.Mutex
	seen map[*Item]bt.Outcome
}

func (o *outcomes) done(it *Item, out bt.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, twice := o.seen[it]; twice {
		o.t.Errorf("%s ended twice", it.Key)
	}
	if o.seen == nil {
		o.seen = map[*Item]bt.Outcome{}
	}
	o.seen[it] = out
}

func (o *outcomes) count(s bt.State) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, out := range o.seen {
		if out.State == s {
			n++
		}
	}
	return n
}

func TestBatchesCloseOnWhateverComesFirst(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int
		edit  func(*Options)
		bytes int
		muts  int
		want  time.Duration // until the first request
		size  int           // of the first request
	}{
		{"linger", 3, nil, 100, 1, 5 * time.Millisecond, 3},
		{"entries", 10, nil, 100, 1, 0, 10},
		{"bytes", 4, func(o *Options) { o.BatchBytes = 400 }, 100, 1, 0, 4},
		{"mutations", 5, func(o *Options) { o.BatchMutations = 15 }, 100, 3, 0, 5},
		{"no linger", 1, func(o *Options) { o.Linger = 0 }, 100, 1, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, opts := &service{t: t}, options()
				if tt.edit != nil {
					tt.edit(&opts)
				}
				q := New(s, opts)
				begin := time.Now()
				ended := make(chan time.Time, tt.n)
				for i := range tt.n {
					it := &Item{Tenant: "a", Key: fmt.Sprint(i), Bytes: tt.bytes, Mutations: int32(tt.muts)}
					it.Done = func(*Item, bt.Outcome) { ended <- time.Now() }
					if err := q.Enqueue(t.Context(), it); err != nil {
						t.Fatal(err)
					}
				}
				if got := (<-ended).Sub(begin); got != tt.want {
					t.Errorf("first item: got its end after %v, want %v", got, tt.want)
				}
				if err := q.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(s.requests[0]) != tt.size {
					t.Errorf("first request: got %d items, want %d", len(s.requests[0]), tt.size)
				}
			})
		})
	}
}

// TestRowsKeepTheirOrder checks that writes of one row reach the service one at a time, in the order of their arrival,
// whatever fails in between. Waiting writes may be replaced by later ones, but the last write is always sent.
func TestRowsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 1))
		var mu sync.Mutex
		roll := func() int { mu.Lock(); defer mu.Unlock(); return rnd.IntN(10) }
		s := &service{t: t, takes: 3 * time.Millisecond}
		s.verdict = func(*Item) error {
			if roll() == 0 {
				return errBusy
			}
			return nil
		}
		s.whole = func([]*Item) (Report, error) {
			if roll() == 0 {
				return Report{Down: true, Err: errBusy}, errBusy
			}
			return Report{}, nil
		}
		q := New(s, options())
		sent := map[string][]int{}
		var ended outcomes
		ended.t = t
		for i := range 5000 {
			tenant := string(rune('a' + i%3))
			it := item(tenant, fmt.Sprintf("%s%d", tenant, roll()*10+roll()))
			it.Work, it.Done, it.Alone = i, ended.done, tenant == "c"
			sent[it.Key] = append(sent[it.Key], i)
			if err := q.Enqueue(t.Context(), it); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ended.count(bt.Stored); got != 5000 {
			t.Errorf("got %d of 5000 items ended after Flush", got)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		skipped := 0
		for key, want := range sent {
			got := s.order[key]
			if !slices.IsSorted(got) || got[len(got)-1] != want[len(want)-1] {
				t.Errorf("row %s: got writes %v of %v", key, got, want)
			}
			if key[0] == 'c' && !slices.Equal(got, want) {
				t.Errorf("row %s, whose writes depend on each other: got %v, want %v", key, got, want)
			}
			skipped += len(want) - len(got)
		}
		if skipped == 0 {
			t.Error("no write was replaced by a later one, so the test shows nothing")
		}
		if st := q.Stats(); st.Entries != 0 || st.Bytes != 0 || len(q.lanes) != 0 || len(q.rows) != 0 || q.ring.n != 0 {
			t.Errorf("empty buffer: got %+v, %d lanes, %d rows, a ring of %d", st, len(q.lanes), len(q.rows), q.ring.n)
		}
	})
}

// TestPoisonIsRejectedAlone checks that, if one item makes the service refuse whole requests, only that item is
// rejected.
func TestPoisonIsRejectedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: time.Millisecond}
		poison := func(it *Item) bool { return it.Key == "3" || it.Key == "7" }
		s.whole = func(items []*Item) (Report, error) {
			if slices.ContainsFunc(items, poison) {
				return Report{Suspect: len(items) > 1}, errBad
			}
			return Report{}, nil
		}
		q := New(s, options())
		var ended outcomes
		ended.t = t
		for i := range 10 {
			it := item("a", fmt.Sprint(i))
			it.Done = ended.done
			if err := q.Enqueue(t.Context(), it); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for it, out := range ended.seen {
			if want := map[bool]bt.State{true: bt.Rejected, false: bt.Stored}[poison(it)]; out.State != want {
				t.Errorf("%s: got %+v, want state %d", it.Key, out, want)
			}
		}
		if len(s.requests) > 15 {
			t.Errorf("got %d requests to find 2 refused items of 10", len(s.requests))
		}
	})
}

// TestOutage checks an hour's outage while a producer adds items as fast as it can. The buffer stays within its limits,
// the number of requests is bounded, and afterwards everything is delivered.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var asked atomic.Int64
		s := &service{t: t, takes: time.Millisecond}
		s.whole = func([]*Item) (Report, error) {
			if time.Since(begin) < time.Hour {
				asked.Add(1)
				return Report{Down: true, Err: errBusy}, errBusy
			}
			return Report{}, nil
		}
		opts := options()
		q := New(s, opts)
		var ended outcomes
		ended.t = t
		n := 0
		for time.Since(begin) < time.Hour+time.Minute {
			it := item("a", fmt.Sprint(n))
			it.Done = ended.done
			if err := q.Enqueue(t.Context(), it); err != nil {
				t.Fatal(err)
			}
			if n++; time.Since(begin) > time.Hour {
				time.Sleep(10 * time.Millisecond)
			}
			if st := q.Stats(); st.Entries > opts.BufferEntries || st.Bytes > opts.BufferBytes {
				t.Fatalf("got a buffer of %+v, over its limits", st)
			}
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ended.count(bt.Stored); got != n {
			t.Errorf("got %d of %d items stored", got, n)
		}
		// Once the longest interval is reached, the shortest wait between two probes is half of it.
		if most := int64(time.Hour/(longestProbe/2)) + 50; asked.Load() > most || asked.Load() < 100 {
			t.Errorf("got %d requests in the outage of an hour, want at most %d", asked.Load(), most)
		}
		t.Logf("%d items, %d requests in the outage", n, asked.Load())
	})
}

func TestItemsEndAtTheirDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: time.Millisecond, whole: func([]*Item) (Report, error) {
			return Report{Down: true, Err: errLost}, errLost
		}}
		opts := options()
		opts.Delivery = time.Minute
		q := New(s, opts)
		begin := time.Now()
		var ends []time.Duration
		var ended outcomes
		ended.t = t
		for i := range 500 {
			it := item("a", fmt.Sprint(i))
			it.Done = func(it *Item, out bt.Outcome) {
				ends = append(ends, time.Since(begin))
				ended.done(it, out)
				if !errors.Is(out.Err, ErrTimeout) {
					t.Errorf("got %+v, want ErrTimeout", out)
				}
				if (out.State == bt.Unknown) != (out.Attempts > 0) {
					t.Errorf("got %+v, want unknown if the response was lost, and rejected if the item was never sent", out)
				}
			}
			if err := q.Enqueue(t.Context(), it); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(ends) != 500 || slices.Max(ends) > time.Minute+time.Second || slices.Min(ends) < time.Minute {
			t.Errorf("got %d items ended, between %v and %v", len(ends), slices.Min(ends), slices.Max(ends))
		}
		if ended.count(bt.Unknown) == 0 || ended.count(bt.Rejected) == 0 {
			t.Errorf("got %d unknown and %d rejected", ended.count(bt.Unknown), ended.count(bt.Rejected))
		}
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCloseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{t: t, takes: time.Hour}
		opts := options()
		opts.Request = 2 * time.Hour
		q := New(s, opts)
		var ended outcomes
		ended.t = t
		for i := range 500 { // some wait in batches, some in the queue, some behind others of their row
			it := item("a", fmt.Sprint(i%400))
			it.Done = ended.done
			if err := q.Enqueue(t.Context(), it); err != nil {
				t.Fatal(err)
			}
		}
		blocked := make(chan error)
		go func() {
			big := item("a", "big")
			big.Bytes = 1 << 20
			blocked <- q.Enqueue(context.Background(), big)
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if err := q.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: got %v", err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("Close took %v", took)
		}
		if err := <-blocked; !errors.Is(err, ErrClosed) {
			t.Errorf("Enqueue that waited for room: got %v", err)
		}
		synctest.Wait()
		if len(ended.seen) != 500 {
			t.Errorf("got %d of 500 items ended", len(ended.seen))
		}
		if err := q.Enqueue(t.Context(), item("a", "x")); !errors.Is(err, ErrClosed) {
			t.Errorf("Enqueue after Close: got %v", err)
		}
		if err := q.Close(t.Context()); err != nil {
			t.Errorf("second Close: got %v", err)
		}
		if q.ring.n != 0 || len(q.lanes) != 0 || len(q.rows) != 0 {
			t.Errorf("got %d lanes with something to send, %d lanes and %d rows in a buffer that Close has emptied", q.ring.n, len(q.lanes), len(q.rows))
		}
	})
}
