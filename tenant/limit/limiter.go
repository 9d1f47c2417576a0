package limit

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Options configure a Limiter. The zero value is useful.
type Options struct {
	// Clock returns the time for rates and windows. Nil is time.Now.
	Clock func() time.Time
	// Window is how long an entity counts after it was written: at least Window, at most twice that. Zero is 24
	// hours.
	Window time.Duration
	// Tenants is about how many tenants are held in memory: some 250 bytes each, and up to 18 bytes per entity if
	// Entities is limited. Zero is 100,000; at most 10 million. A tenant is forgotten without effect when its bursts
	// are full again, none of its reads is in progress and none of its entities counts. If there are more than
	// Tenants, the limiter also forgets the least recently used one of a few: that tenant starts again with full
	// bursts and no entities. A tenant with a read in progress is never forgotten.
	Tenants int
}

const (
	defaultWindow  = 24 * time.Hour
	defaultTenants = 100_000
	maxTenants     = 10_000_000
	maxShards      = 64
)

// Limiter applies the limits of a Table. New makes one; set it as StoreOptions.Limits of a store. It is safe for
// concurrent use, starts no goroutine and needs no Close. A nil or zero Limiter limits no tenant.
//
// It allows exactly the tenant's limits, as long as the tenant is held in memory. An allowed call counts, even if it
// fails later for another reason. A refused call does not count.
type Limiter struct {
	limiterGate

	clock   func() time.Time
	epoch   time.Time
	window  int64
	most    int // the most tenants of a shard
	seed    maphash.Seed
	rules   atomic.Pointer[rules]
	setting sync.Mutex
	shards  []shard

	profiles profiles
}

// shard holds a part of the tenants.
type shard struct {
	mu      sync.RWMutex
	tenants map[tenant.ID]*usage
}

// New returns a limiter for a table. The error names the field, its value and what is allowed.
func New(t Table, opts Options) (*Limiter, error) {
	switch {
	case opts.Window < 0:
		return nil, invalid.New(invalid.ErrLimits, "Window", opts.Window.String(), "0 for the default, or more")
	case opts.Tenants < 0 || opts.Tenants > maxTenants:
		return nil, invalid.New(invalid.ErrLimits, "Tenants", strconv.Itoa(opts.Tenants), "0 for the default, or 1 to "+strconv.Itoa(maxTenants))
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Window == 0 {
		opts.Window = defaultWindow
	}
	if opts.Tenants == 0 {
		opts.Tenants = defaultTenants
	}
	l := &Limiter{clock: opts.Clock, epoch: opts.Clock(), window: int64(opts.Window), seed: maphash.MakeSeed()}
	l.shards = make([]shard, min(maxShards, opts.Tenants))
	l.most = (opts.Tenants-1)/len(l.shards) + 1
	for i := range l.shards {
		l.shards[i].tenants = map[tenant.ID]*usage{}
	}
	return l, l.Set(t)
}

type (
	limiterGate = gate.Gate[core]
	core        struct{ gate.Core[*Limiter] } // what stores call
)

var _ gate.Face[core] = Limiter{}.limiterGate

// Set replaces the table for all later calls. The tenants' usage stays: a used burst is also used under the new
// limits, and entities count. (Without a limit, nothing was counted before.) If the table is invalid, Set changes
// nothing and returns an error. The cost is proportional to the number of overrides. The caller may
// change the table afterwards.
func (l *Limiter) Set(t Table) error {
	if l == nil || l.clock == nil {
		return invalid.New(invalid.ErrLimits, "limiter", "nil or the zero value", "a limiter from New")
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	r, err := t.rules(l.now(), &l.profiles)
	if err != nil {
		return err
	}
	old := cmp.Or(l.rules.Load(), r)
	if old.table == r.table && old.share == r.share {
		r.since = old.since
	}
	for id := range r.changed(old) {
		l.settle(id)
	}
	l.rules.Store(r)
	for id := range r.changed(old) { // so that a later Set does not count for them
		l.settle(id)
	}
	return nil
}

// settle adds a tenant's allowances up to now by the current limits.
func (l *Limiter) settle(id tenant.ID) {
	sh := l.shardOf(id)
	sh.mu.RLock()
	u := sh.tenants[id]
	sh.mu.RUnlock()
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := l.now()
	u.adopt(l.rules.Load(), id, now)
	u.flow(now)
}

// Limits returns the limits of a tenant in this process, from the table and the tenant's profile, after Table.Share
// and with default bursts filled in.
func (l *Limiter) Limits(id tenant.ID) Limits {
	if l.off() {
		return Limits{}
	}
	return *l.rules.Load().of(id)
}

// off reports whether the limiter was not made by New.
func (l *Limiter) off() bool { return l == nil || l.rules.Load() == nil }

func (l *Limiter) now() int64 { return int64(l.clock().Sub(l.epoch)) }

// shardOf returns the tenant's shard.
func (l *Limiter) shardOf(id tenant.ID) *shard {
	hi, _ := bits.Mul64(maphash.String(l.seed, id.String()), uint64(len(l.shards)))
	return &l.shards[hi]
}

// hash returns the hash by which an entity of a dataset is counted.
func (l *Limiter) hash(dataset, entity string) uint64 {
	const odd = 0x9e3779b97f4a7c15 // so that swapping dataset and entity changes the hash
	return maphash.String(l.seed, dataset)*odd ^ maphash.String(l.seed, entity)
}

// acquire returns the tenant's usage, locked and with the current limits, and the time; or nil if the tenant has no
// limits. The caller unlocks it. The time is read under the lock: an older time would count as a clock that went back,
// and the next call would add the same allowance again.
func (l *Limiter) acquire(id tenant.ID) (_ *usage, now int64) {
	sh := l.shardOf(id)
	for {
		sh.mu.RLock()
		u := sh.tenants[id]
		sh.mu.RUnlock()
		if u == nil {
			if *l.rules.Load().of(id) == (Limits{}) {
				return nil, 0
			}
			u = sh.add(id, l)
		}
		u.mu.Lock()
		if !u.forgotten {
			now = l.now()
			if r := l.rules.Load(); u.rules != r { // check under the lock, so that a tenant never returns to older rules
				u.adopt(r, id, now)
			}
			u.last = now
			return u, now
		}
		u.mu.Unlock()
	}
}

// looks is how many tenants are checked for each one added: more than one, so that tenants are forgotten faster than
// they are added. If there are too many tenants, the least recently used of those checked is forgotten.
const looks = 8

// add adds a tenant, and forgets others to make room.
func (sh *shard) add(id tenant.ID, l *Limiter) *usage {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if u := sh.tenants[id]; u != nil {
		return u
	}
	looked := 0
	var oldest *usage
	var oldestID tenant.ID
	var unused int64 // when oldest was last used; it may have been used since
	for other, u := range sh.tenants {
		if looked >= looks && (oldest != nil || len(sh.tenants) < l.most) {
			break
		}
		looked++
		if !u.mu.TryLock() { // in use
			continue
		}
		if u.idle(l.now(), l.window) {
			u.forgotten = true
			delete(sh.tenants, other)
		} else if u.reads == 0 && (oldest == nil || u.last < unused) {
			oldest, oldestID, unused = u, other, u.last
		}
		u.mu.Unlock()
	}
	if oldest != nil && len(sh.tenants) >= l.most {
		oldest.mu.Lock()
		if oldest.reads == 0 {
			oldest.forgotten = true
			delete(sh.tenants, oldestID)
		}
		oldest.mu.Unlock()
	}
	u := &usage{last: l.now()}
	sh.tenants[id] = u
	return u
}
