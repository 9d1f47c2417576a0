package points

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// The most followers of a store, and of one tenant.
const (
	MaxFollowers       = 1000
	MaxTenantFollowers = 100
)

// The bounds of a follower's queue.
const (
	queuePoints = 1024
	queueBytes  = 1 << 20
)

// retryFollow is the RetryAfter of a refused follower: a guess, as the end of another one is unknown.
const retryFollow = time.Second

// ErrTooManyFollowers: a store has as many followers as it may have.
var ErrTooManyFollowers = errtype.New("tsdb.ErrTooManyFollowers", "tsdb: too many followers")

// Feed passes the points that a store's calls and writers store to followers. The zero value has no followers, and
// costs a write one atomic load.
type Feed struct {
	followers atomic.Pointer[map[rowkey.ID][]*Subscription] // by dataset; replaced, never changed

	mu      sync.Mutex
	tenants map[string]int
	n       int
	closed  bool
}

// Arrival is a point that this store has stored.
type Arrival struct {
	Path    string
	Units   int64
	ID      string
	Tag     string // the name of its codec
	Payload []byte
}

// Lost describes points that did not fit into a queue and that are too old to be found by reading.
type Lost struct {
	Points         int
	Oldest, Newest int64 // their times, in units
}

// Subscription is a follower's queue of points that this store has stored. When it is full it drops what it holds: the
// follower then reads the table. A slow follower delays no write.
type Subscription struct {
	feed   *Feed
	of     rowkey.ID // of the dataset
	tenant string
	takes  func(path string) bool
	clock  func() time.Time          // of the store
	oldest func(now time.Time) int64 // the time of the oldest point that is found by reading, in units

	// Ready receives a value when there may be something to take, and is closed with the subscription.
	Ready chan struct{}

	mu     sync.Mutex
	queue  []Arrival
	bytes  int
	full   bool // points were dropped
	lost   Lost
	closed bool
}

// Subscribe adds a follower of the points in a space whose paths takes accepts. clock is that of the store, and oldest
// returns the time of the oldest point that is found by reading, in units. It refuses one more than MaxTenantFollowers
// with a *limit.Error.
func (f *Feed) Subscribe(space rowkey.Space, takes func(path string) bool, clock func() time.Time, oldest func(now time.Time) int64) (*Subscription, error) {
	of := space.ID("")
	s := &Subscription{feed: f, of: of, tenant: of.Tenant(), takes: takes, clock: clock, oldest: oldest, Ready: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch n := f.tenants[s.tenant]; {
	case f.closed:
		return nil, bt.ErrClosed
	case n >= MaxTenantFollowers: // first: it also holds if others use the rest
		id, _ := tenant.Parse(s.tenant)
		return nil, &limit.Error{ID: limit.Followers, Tenant: id, Limit: MaxTenantFollowers, Used: int64(n) + 1, RetryAfter: retryFollow}
	case f.n >= MaxFollowers:
		return nil, ErrTooManyFollowers
	}
	if f.tenants == nil {
		f.tenants = map[string]int{}
	}
	f.n++
	f.tenants[s.tenant]++
	f.replace(of, append(slices.Clip(f.all()[of]), s))
	return s, nil
}

// Close ends the subscription. Closing it twice does nothing.
func (s *Subscription) Close() {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove(s)
}

// Close ends all subscriptions, and refuses new ones.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, all := range f.all() {
		for _, s := range all {
			f.remove(s)
		}
	}
}

// remove removes a subscription. The feed is locked.
func (f *Feed) remove(s *Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed, s.queue = true, nil
	close(s.Ready)
	f.n--
	if f.tenants[s.tenant]--; f.tenants[s.tenant] == 0 {
		delete(f.tenants, s.tenant)
	}
	f.replace(s.of, slices.DeleteFunc(slices.Clone(f.all()[s.of]), func(o *Subscription) bool { return o == s }))
}

func (f *Feed) all() map[rowkey.ID][]*Subscription {
	if m := f.followers.Load(); m != nil {
		return *m
	}
	return nil
}

// replace sets the followers of a dataset.
func (f *Feed) replace(of rowkey.ID, followers []*Subscription) {
	m := maps.Clone(f.all())
	if m == nil {
		m = map[rowkey.ID][]*Subscription{}
	}
	if m[of] = followers; len(followers) == 0 {
		delete(m, of)
	}
	if len(m) == 0 {
		f.followers.Store(nil)
		return
	}
	f.followers.Store(&m)
}

func (f *Feed) pass(m map[rowkey.ID][]*Subscription, w *Write) {
	var a Arrival
	var now instant
	path := w.Entity.Path()
	for _, s := range m[w.Entity.Dataset()] {
		if !s.takes(path) {
			continue
		}
		if a.Path == "" { // copied once, for all followers
			payload := w.Payload
			if w.merged != nil {
				payload = w.merged
			}
			a = Arrival{Path: strings.Clone(path), Units: w.Units, ID: strings.Clone(w.ID), Tag: w.D.Tags[0], Payload: bytes.Clone(payload)}
		}
		s.add(a, &now)
	}
}

// instant is a time that is read when it is first needed: all followers of a write share one reading.
type instant struct{ at time.Time }

func (i *instant) of(clock func() time.Time) time.Time {
	if i.at.IsZero() {
		i.at = clock()
	}
	return i.at
}

func (s *Subscription) add(a Arrival, now *instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if !s.full && (len(s.queue) == queuePoints || s.bytes+len(a.Payload) > queueBytes && len(s.queue) > 0) {
		s.full = true
		oldest := s.oldest(now.of(s.clock))
		for i := range s.queue {
			s.drop(s.queue[i].Units, oldest)
		}
		s.queue, s.bytes = nil, 0
	}
	if s.full {
		s.drop(a.Units, s.oldest(now.of(s.clock)))
	} else {
		s.queue = append(s.queue, a)
		s.bytes += len(a.Payload)
	}
	select {
	case s.Ready <- struct{}{}:
	default:
	}
}

// drop notes a point that does not fit if a read does not find it.
func (s *Subscription) drop(units, oldest int64) {
	if units >= oldest {
		return
	}
	if s.lost.Points == 0 {
		s.lost.Oldest, s.lost.Newest = units, units
	}
	s.lost.Points++
	s.lost.Oldest, s.lost.Newest = min(s.lost.Oldest, units), max(s.lost.Newest, units)
}

// Take returns what is queued, in the order of arrival. full says that points were dropped since the last call, and
// lost describes those of them that a read does not find. open is false once the subscription is closed.
func (s *Subscription) Take() (queue []Arrival, full bool, lost Lost, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue, full, lost = s.queue, s.full, s.lost
	s.queue, s.bytes, s.full, s.lost = nil, 0, false, Lost{}
	return queue, full, lost, !s.closed
}
