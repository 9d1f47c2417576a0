package tsdb

import (
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
)

// CacheOptions are what the last-value cache of a store may hold: the newest points of entities, for the calls that take a
// MaxStale. The zero value is no cache.
type CacheOptions struct {
	// Entries is how many entities' newest points may be kept, those without any included: up to 100 million. Zero is no
	// cache.
	Entries int
	// Bytes bounds the memory for them, about. Zero is 1 KiB an entry. Points of over 64 KiB are never kept.
	Bytes int64
	// MaxAge is how long a point may answer after it was read, whatever a call's MaxStale says. Zero is a minute.
	MaxAge time.Duration
}

const (
	maxCacheEntries = 100_000_000
	cacheEntryBytes = 1 << 10
	cacheMaxAge     = time.Minute
)

func (o CacheOptions) check() error {
	switch {
	case o.Entries < 0 || o.Entries > maxCacheEntries:
		return invalid.New(ErrInvalid, "Cache.Entries", strconv.Itoa(o.Entries), "0 for no cache, up to "+strconv.Itoa(maxCacheEntries))
	case o.Bytes < 0:
		return invalid.New(ErrInvalid, "Cache.Bytes", strconv.FormatInt(o.Bytes, 10), "0 for the default, or more")
	case o.MaxAge < 0:
		return invalid.New(ErrInvalid, "Cache.MaxAge", o.MaxAge.String(), "0 for the default, or more")
	}
	return nil
}

// open returns the cache, nil for none.
func (o CacheOptions) open() *lastvalue.Cache {
	if o.Entries == 0 {
		return nil
	}
	c := lastvalue.Options{Entries: o.Entries, Bytes: o.Bytes, MaxAge: o.MaxAge, Closed: ErrClosed}
	if c.Bytes == 0 {
		c.Bytes = int64(o.Entries) * cacheEntryBytes
	}
	if c.MaxAge == 0 {
		c.MaxAge = cacheMaxAge
	}
	return lastvalue.New(c)
}

// MaxStale is a ReadOption: how old the answer of Latest or LatestMany may be, so that the store's last-value cache may
// give it (StoreOptions.Cache). The answer holds whatever was stored that long before the call, and all that this store has
// stored or deleted by the time of the call; of two writes of one entity at once, either. What is not known is read, once
// for all who ask for it at the same time. Age is counted from when a read was started, by the monotonic clock, not by
// StoreOptions.Clock. MaxStale(0) is the default: every call reads the table. Below 0 is refused with ErrInvalid.
//
// Without a cache, and in calls for more than one point of an entity or for entities that are not named, it changes nothing.
type MaxStale time.Duration

// CacheStats are what the last-value cache of a store holds and has done since the store was opened.
type CacheStats struct {
	// Hits are the answers it gave from memory, Misses the reads it made, Shared the answers that came of a read which was
	// under way for another caller.
	Hits, Misses, Shared uint64
	// Entries is how many entities it knows the newest point of, and Bytes what it counts for them against its limit; the
	// smallest entries count for a share of the limit each.
	Entries int
	Bytes   int64
}

// CacheStats returns what the store's last-value cache holds and has done; zero without one.
func (s *Store) CacheStats() CacheStats {
	if s == nil || s.core == nil || s.core.Cache == nil {
		return CacheStats{}
	}
	c := s.core.Cache.Stats()
	return CacheStats{Hits: c.Hits, Misses: c.Misses, Shared: c.Shared, Entries: c.Entries, Bytes: int64(c.Bytes)}
}
