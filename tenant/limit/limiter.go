package limit

import (
	"hash/maphash"
	"math/bits"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// Options are how a Limiter keeps what tenants have used. The zero value is good.
type Options struct {
	// Clock tells the time by which rates bring points and windows end. Nil is time.Now.
	Clock func() time.Time
	// Window is how long an entity counts at least after it was written, and twice that at most. Zero is 24 hours.
	Window time.Duration
	// Tenants is how many tenants are kept in memory, about: some 250 bytes each, and up to 18 an entity where Entities are
	// limited. Zero is 100,000, up to 10 million. A tenant is forgotten, at no loss, once its rates are made up for, none of
	// its reads is under way and none of its entities counts. Where more than Tenants are kept, the one of a few that was
	// unused for longest is forgotten too: it begins anew, with full bursts and no entities. A tenant with a read under way
	// is never forgotten.
	Tenants int
}

const (
	defaultWindow  = 24 * time.Hour
	defaultTenants = 100_000
	maxTenants     = 10_000_000
	maxShards      = 64
)

// Limiter holds tenants to the limits of a Table. New makes one; give it to a store as StoreOptions.Limits, which then asks it. It is
// safe for concurrent use, starts no goroutine and needs no end. A nil or zero Limiter limits nobody.
//
// It lets through exactly what a tenant's limits say, as long as the tenant is kept in memory. A call that is let through
// counts, also where it fails later for another reason. One that is refused uses nothing.
type Limiter struct {
	clock   func() time.Time
	epoch   time.Time
	window  int64
	most    int // tenants of a shard
	seed    maphash.Seed
	rules   atomic.Pointer[rules]
	setting sync.Mutex
	shards  []shard

	profiles profiles
}

// shard is some of the tenants.
type shard struct {
	mu      sync.RWMutex
	tenants map[tenant.ID]*usage
}

// New returns a limiter by a table. Its error matches ErrInvalid.
func New(t Table, opts Options) (*Limiter, error) {
	switch {
	case opts.Window < 0:
		return nil, invalid.New(ErrInvalid, "Window", opts.Window.String(), "0 for the default, or more")
	case opts.Tenants < 0 || opts.Tenants > maxTenants:
		return nil, invalid.New(ErrInvalid, "Tenants", strconv.Itoa(opts.Tenants), "0 for the default, or 1 to "+strconv.Itoa(maxTenants))
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

// Set puts a table in the place of the one before, for all calls that come after it. What tenants have used stays: a burst
// that was used up is used up under the new limits too, and entities count. (Where there was no limit before, nothing was
// counted.) A table that nothing can be made of changes nothing, and its error matches ErrInvalid. It costs as much as the
// table has overrides. The table may be changed afterwards.
func (l *Limiter) Set(t Table) error {
	if l == nil || l.clock == nil {
		return invalid.New(ErrInvalid, "limiter", "nil or zero", "one from New")
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	r, err := t.rules(l.now(), &l.profiles)
	if err != nil {
		return err
	}
	l.rules.Store(r)
	return nil
}

// Limits returns what applies to a tenant in this process, by the table and the tenant's profile: its part of its limits, with the bursts that are left to their default
// filled in.
func (l *Limiter) Limits(id tenant.ID) Limits {
	if l.off() {
		return Limits{}
	}
	return *l.rules.Load().of(id)
}

// off reports whether the limiter does not come from New.
func (l *Limiter) off() bool { return l == nil || l.rules.Load() == nil }

func (l *Limiter) now() int64 { return int64(l.clock().Sub(l.epoch)) }

// shardOf returns where a tenant is.
func (l *Limiter) shardOf(id tenant.ID) *shard {
	hi, _ := bits.Mul64(maphash.String(l.seed, id.String()), uint64(len(l.shards)))
	return &l.shards[hi]
}

// hash returns what an entity of a dataset counts by.
func (l *Limiter) hash(dataset, entity string) uint64 {
	const odd = 0x9e3779b97f4a7c15 // so that the two are not the same the other way round
	return maphash.String(l.seed, dataset)*odd ^ maphash.String(l.seed, entity)
}

// acquire returns what a tenant has used, locked and with the limits that apply now, or nil where it has no limits. The caller
// unlocks it.
func (l *Limiter) acquire(id tenant.ID, now int64) *usage {
	sh := l.shardOf(id)
	for {
		sh.mu.RLock()
		u := sh.tenants[id]
		sh.mu.RUnlock()
		if u == nil {
			if *l.rules.Load().of(id) == (Limits{}) {
				return nil
			}
			u = sh.add(id, now, l)
		}
		u.mu.Lock()
		if !u.forgotten {
			if r := l.rules.Load(); u.rules != r { // under the lock, so that a tenant never goes back to older rules
				u.adopt(r, id, now)
			}
			u.last = now
			return u
		}
		u.mu.Unlock()
	}
}

// looks is how many tenants are looked at for each that is added: more than one, to forget them faster than they come. Where
// there are too many, the one of these goes that was unused for longest.
const looks = 8

// add keeps a tenant in memory, and makes room for it.
func (sh *shard) add(id tenant.ID, now int64, l *Limiter) *usage {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if u := sh.tenants[id]; u != nil {
		return u
	}
	looked := 0
	var oldest *usage
	var oldestID tenant.ID
	var unused int64 // since when oldest was, as it was seen: it may be used again by now
	for other, u := range sh.tenants {
		if looked >= looks && (oldest != nil || len(sh.tenants) < l.most) {
			break
		}
		looked++
		if !u.mu.TryLock() { // it is being used
			continue
		}
		if u.idle(now, l.window) {
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
	u := &usage{last: now}
	sh.tenants[id] = u
	return u
}
