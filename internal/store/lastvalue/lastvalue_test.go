package lastvalue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errClosed = errors.New("closed")

func open(o lastvalue.Options) *lastvalue.Cache {
	o.Closed = errClosed
	return lastvalue.New(o)
}

func space(t *testing.T, id string) rowkey.Space {
	t.Helper()
	s, err := rowkey.NewSpace(tenant.MustParse(id), "readings", []string{"device"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func device(t *testing.T, n int) rowkey.ID {
	return space(t, "acme").ID(rowkey.Path(fmt.Sprintf("d-%d", n)))
}

func good(*lastvalue.Newest) bool { return true }

// point is a read that finds a point at once.
func point(units int64, size int) func(context.Context) (*lastvalue.Newest, error) {
	return func(context.Context) (*lastvalue.Newest, error) {
		return &lastvalue.Newest{Layout: "l", Found: true, Units: units, Payload: make([]byte, size)}, nil
	}
}

// TestCacheIsBounded checks the bounds of the cache: entries if they are small, bytes if they are large, and age.
func TestCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name          string
			entries       int
			bytes         int64
			payload, most int
		}{
			{"small", 100, 100 << 10, 10, 100},
			{"large", 1000, 1 << 20, 32 << 10, 16},
			{"too large", 1000, 1 << 30, lastvalue.MaxPayload + 1, 0},
			{"larger than all", 10, 10, 10, 0},
		} {
			c := open(lastvalue.Options{Entries: tt.entries, Bytes: tt.bytes, MaxAge: time.Minute})
			for n := range 3000 {
				if _, err := c.Load(t.Context(), device(t, n), "l", c.Since(time.Minute), good, point(1, tt.payload)); err != nil {
					t.Fatal(err)
				}
			}
			s := c.Stats()
			if s.Entries > tt.most || s.Bytes > uint64(tt.bytes) || tt.most > 0 && s.Entries < tt.most/2 || s.Misses != 3000 {
				t.Errorf("%s: got %+v, want at most %d entries and %d bytes", tt.name, s, tt.most, tt.bytes)
			}
			time.Sleep(2 * time.Minute)
			if s := c.Stats(); s.Entries != 0 || s.Bytes != 0 {
				t.Errorf("%s: got %+v after the maximum age, want no entries", tt.name, s)
			}
			c.Close()
		}
	})
}

// TestLargePointRemovesOlderOne checks that a point that is too large for the cache leaves no older point behind.
func TestLargePointRemovesOlderOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(lastvalue.Options{Entries: 10, Bytes: 1 << 20, MaxAge: time.Minute})
		defer c.Close()
		id, m := device(t, 1), new(lastvalue.Mark)
		load := func(read func(context.Context) (*lastvalue.Newest, error), stale time.Duration) int64 {
			n, err := c.Load(t.Context(), id, "l", c.Since(stale), good, read)
			if err != nil {
				t.Fatal(err)
			}
			return n.Units
		}
		load(point(1, 10), time.Minute)
		c.Begin(m, id)
		c.Stored(m, id, lastvalue.Written{Layout: "l", Units: 2, Payload: make([]byte, lastvalue.MaxPayload+1)})
		if got := load(point(2, 10), time.Minute); got != 2 {
			t.Errorf("after a large write: got time %d", got)
		}
		time.Sleep(time.Second)
		load(point(3, lastvalue.MaxPayload+1), 0)
		if got := load(point(4, 10), time.Minute); got != 4 {
			t.Errorf("after a large read: got time %d", got)
		}
	})
}

// TestWritesOfOneEntity checks the cached point after writes of one entity, one after another and concurrent.
func TestWritesOfOneEntity(t *testing.T) {
	type call = func(c *lastvalue.Cache, id rowkey.ID)
	a, b := new(lastvalue.Mark), new(lastvalue.Mark)
	begin := func(m *lastvalue.Mark) call { return func(c *lastvalue.Cache, id rowkey.ID) { c.Begin(m, id) } }
	stored := func(m *lastvalue.Mark, units int64) call {
		return func(c *lastvalue.Cache, id rowkey.ID) {
			c.Stored(m, id, lastvalue.Written{Layout: "l", Units: units, Payload: []byte("w")})
		}
	}
	changed := func(units int64) call { return func(c *lastvalue.Cache, id rowkey.ID) { c.Changed(id, "l", units) } }
	const none = -1
	for name, tt := range map[string]struct {
		calls []call
		want  int64 // time of the cached point; the read found 10
	}{
		"newer":                      {[]call{begin(a), stored(a, 20)}, 20},
		"same time":                  {[]call{begin(a), stored(a, 10)}, 10},
		"late":                       {[]call{begin(a), stored(a, 5)}, 10},
		"one after the other":        {[]call{begin(a), stored(a, 20), begin(b), stored(b, 30)}, 30},
		"the second one is late":     {[]call{begin(a), stored(a, 20), begin(b), stored(b, 15)}, 20},
		"two of one call":            {[]call{begin(a), begin(a), stored(a, 30), stored(a, 20)}, 30},
		"at once, first ends first":  {[]call{begin(a), begin(b), stored(a, 20), stored(b, 20)}, none},
		"at once, second ends first": {[]call{begin(a), begin(b), stored(b, 20), stored(a, 20)}, none},
		"at once, the last is late":  {[]call{begin(a), begin(b), stored(b, 20), stored(a, 5)}, 20},
		"unknown":                    {[]call{begin(a), changed(20)}, none},
		"unknown at the same time":   {[]call{begin(a), changed(10)}, none},
		"unknown and late":           {[]call{begin(a), changed(5)}, 10},
		"changed during the write":   {[]call{begin(a), changed(20), stored(a, 20)}, none},
		"changed after the write":    {[]call{begin(a), stored(a, 20), changed(20)}, none},
		"all dropped":                {[]call{func(c *lastvalue.Cache, id rowkey.ID) { c.Drop(id) }}, none},
		"never begun":                {[]call{stored(a, 20)}, none},
		"read again during the write": {[]call{begin(a), func(c *lastvalue.Cache, id rowkey.ID) {
			c.Drop(id)
			_, _ = c.Load(context.Background(), id, "l", c.Since(time.Minute), good, point(12, 1))
		}, stored(a, 20)}, none},
		"of another layout": {[]call{begin(a), func(c *lastvalue.Cache, id rowkey.ID) {
			c.Stored(a, id, lastvalue.Written{Layout: "other", Units: 5})
		}}, none},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := open(lastvalue.Options{Entries: 10, Bytes: 1 << 20, MaxAge: time.Minute})
			defer c.Close()
			id := device(t, 1)
			if _, err := c.Load(t.Context(), id, "l", c.Since(time.Minute), good, point(10, 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			for _, f := range tt.calls {
				f(c, id)
			}
			got := int64(none)
			if n := c.Find(id, "l", c.Since(time.Minute)); n != nil {
				got = n.Units
				if byWrite := string(n.Payload) == "w"; byWrite != (tt.want != 10 || name == "same time") {
					t.Errorf("%s: got payload %q", name, n.Payload)
				}
			}
			if got != tt.want {
				t.Errorf("%s: got time %d, want %d", name, got, tt.want)
			}
			if n := c.Find(id, "l", c.Since(9*time.Second)); n != nil && name != "read again during the write" {
				t.Errorf("%s: got a point as of a time after the read, although others may have written since", name)
			}
		})
	}
}

// TestRunningReads checks which callers join a running read, and what is cached afterwards.
func TestRunningReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(lastvalue.Options{Entries: 10, Bytes: 1 << 20, MaxAge: time.Minute})
		defer c.Close()
		id := device(t, 1)
		var mu sync.Mutex
		reads := int64(0)
		read := func(ctx context.Context) (*lastvalue.Newest, error) {
			mu.Lock()
			reads++
			units := reads
			mu.Unlock()
			select {
			case <-time.After(time.Second):
				return point(units, 1)(ctx)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		var wg sync.WaitGroup
		ask := func(ctx context.Context, stale time.Duration, want int64, wantErr error) {
			wg.Go(func() {
				n, err := c.Load(ctx, id, "l", c.Since(stale), good, read)
				if !errors.Is(err, wantErr) || err == nil && n.Units != want {
					t.Errorf("staleness %v: got %v, %v; want the point of read %d, %v", stale, n, err, want, wantErr)
				}
			})
			synctest.Wait()
		}
		ask(t.Context(), time.Minute, 1, nil)
		time.Sleep(500 * time.Millisecond)
		ask(t.Context(), time.Minute, 1, nil)          // joins
		ask(t.Context(), 500*time.Millisecond, 1, nil) // the read started exactly this long ago: joins
		ask(t.Context(), 499*time.Millisecond, 2, nil) // the running read is too old: starts another
		ask(t.Context(), time.Minute, 2, nil)          // joins the later read
		c.Changed(id, "l", 7)                          // a write ends
		ask(t.Context(), time.Minute, 3, nil)          // starts after the write: reads again
		leaving, leave := context.WithCancel(t.Context())
		ask(leaving, time.Minute, 0, context.Canceled) // joins and leaves; the others still get an answer
		leave()
		wg.Wait()
		if n := c.Find(id, "l", c.Since(time.Minute)); n == nil || n.Units != 3 {
			t.Errorf("got %v, want the point that was read after the write", n)
		}
		c.Drop(id)
		leaving, leave = context.WithCancel(t.Context())
		ask(leaving, time.Minute, 0, context.Canceled)
		leave()
		synctest.Wait()
		ask(t.Context(), time.Minute, 5, nil) // read 4 was cancelled because nobody waited for it
		wg.Wait()
		if s := c.Stats(); s.Misses != 5 || s.Shared != 4 {
			t.Errorf("got stats %+v, want 5 misses and 4 shared", s)
		}
		c.Drop(id)
		ask(t.Context(), time.Minute, 0, errClosed)
		c.Close()
		wg.Wait()
		ask(t.Context(), time.Minute, 0, errClosed)
		wg.Wait()
		if reads != 6 {
			t.Errorf("got %d reads, want 6", reads)
		}
	})
}

// TestWhatAReadAnswers checks for which calls the result of a read is: those of the same layout, no older than its
// start, and for which it is usable.
func TestWhatAReadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(lastvalue.Options{Entries: 10, Bytes: 1 << 20, MaxAge: time.Minute})
		defer c.Close()
		id := device(t, 1)
		load := func(layout string, usable func(*lastvalue.Newest) bool, read func(context.Context) (*lastvalue.Newest, error), want int64) {
			t.Helper()
			if n, err := c.Load(t.Context(), id, layout, c.Since(time.Hour), usable, read); err != nil || n.Units != want {
				t.Errorf("layout %s: got %v, %v; want time %d", layout, n, err, want)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			load("other", good, func(ctx context.Context) (*lastvalue.Newest, error) {
				time.Sleep(2 * time.Second)
				return point(1, 1)(ctx)
			}, 1)
		})
		time.Sleep(time.Second)
		load("l", good, point(2, 1), 2)
		load("l", func(n *lastvalue.Newest) bool { return n.Units > 2 }, point(3, 1), 3)
		wg.Wait()
		slow := func(ctx context.Context) (*lastvalue.Newest, error) {
			time.Sleep(2 * time.Second)
			return point(4, 1)(ctx)
		}
		load("l", func(*lastvalue.Newest) bool { return false }, slow, 4)
		if c.Find(id, "l", c.Since(2*time.Second)) == nil || c.Find(id, "l", c.Since(2*time.Second-1)) != nil {
			t.Error("the result of a read of two seconds is not as old as the read's start")
		}
		if got := time.Since(c.Since(time.Hour)); got != time.Minute {
			t.Errorf("an answer may be %v old, want at most the cache's minute", got)
		}
	})
}

// TestOutrunReadIsNotCached checks that a read which a later one has replaced is not cached: a write that ends
// meanwhile only knows of the later one.
func TestOutrunReadIsNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(lastvalue.Options{Entries: 10, Bytes: 1 << 20, MaxAge: time.Minute})
		defer c.Close()
		id := device(t, 1)
		load := func(stale time.Duration, read func(context.Context) (*lastvalue.Newest, error)) {
			if _, err := c.Load(t.Context(), id, "l", c.Since(stale), good, read); err != nil {
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			load(time.Minute, func(ctx context.Context) (*lastvalue.Newest, error) {
				time.Sleep(2 * time.Second)
				return point(1, 1)(ctx)
			})
		})
		time.Sleep(time.Second)
		load(0, point(1, 1))
		c.Changed(id, "l", 2)
		wg.Wait()
		if n := c.Find(id, "l", c.Since(time.Minute)); n != nil {
			t.Errorf("got time %d from the cache after a write of time 2, want nothing", n.Units)
		}
	})
}

// TestDropBelow checks that DropBelow drops the entities below a tenant's prefix and no others, and that it covers
// running reads.
func TestDropBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(lastvalue.Options{Entries: 1000, Bytes: 1 << 20, MaxAge: time.Minute})
		defer c.Close()
		ids := map[string][]rowkey.ID{}
		var spaces []rowkey.Space
		for _, name := range []string{"acme", "acme2", "a"} {
			s, err := rowkey.NewSpace(tenant.MustParse(name), "readings", []string{"site", "device"}, 0)
			if err != nil {
				t.Fatal(err)
			}
			spaces = append(spaces, s)
			for _, site := range []string{"berlin", "berlin-2"} {
				for n := range 20 {
					id := s.ID(rowkey.Path(site, fmt.Sprint(n)))
					ids[name+" "+site] = append(ids[name+" "+site], id)
					if _, err := c.Load(t.Context(), id, "l", c.Since(time.Minute), good, point(1, 1)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		var wg sync.WaitGroup
		late := spaces[0].ID(rowkey.Path("berlin", "late"))
		wg.Go(func() {
			_, _ = c.Load(t.Context(), late, "l", c.Since(time.Minute), good, func(ctx context.Context) (*lastvalue.Newest, error) {
				time.Sleep(time.Second)
				return point(1, 1)(ctx)
			})
		})
		synctest.Wait()
		c.DropBelow(spaces[0], rowkey.Path("berlin"))
		wg.Wait()
		for name, ids := range ids {
			for _, id := range ids {
				if got, want := c.Find(id, "l", c.Since(time.Minute)) != nil, name != "acme berlin"; got != want {
					t.Errorf("%s: got cached=%v", name, got)
				}
			}
		}
		if c.Find(late, "l", c.Since(time.Minute)) != nil {
			t.Error("the result of a running read was cached")
		}
		c.DropBelow(spaces[0], "")
		if s := c.Stats(); s.Entries != 80 {
			t.Errorf("got %d entries, want those of the two other tenants", s.Entries)
		}
	})
}
