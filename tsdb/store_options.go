package tsdb

import (
	"cmp"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// StoreOptions are the options of every store. Config, Options, embedded.Options and tsdbtest.Options embed them. The
// zero value is good.
type StoreOptions struct {
	// Timeouts bound every call. Zero fields are the defaults.
	Timeouts Timeouts
	// Clock returns the current time, which decides what has expired, is late, or is too far ahead. Nil is time.Now.
	//
	// In package embedded with a folder, a clock that jumps ahead is not trusted at once, and expired data is not
	// removed until it is. In memory, and in package tsdbtest, each step of the clock counts as elapsed time.
	Clock func() time.Time
	// Telemetry configures traces, metrics and logs. The zero value uses OpenTelemetry's global providers and logs
	// nothing.
	Telemetry Telemetry
	// CursorKeys seal the cursors of pages, so that they are safe to give to clients: at most 16 keys of 32 random
	// bytes. The first key seals; every key opens. To rotate: append the new key in every program, then move it to the
	// front, and remove the old key when no client holds one of its cursors. Without keys, cursors are not sealed: see
	// Repository.Page. Keys are secrets: do not log the options.
	CursorKeys [][]byte
	// Cache configures the last-value cache, which calls with MaxStale use. The zero value is no cache.
	Cache CacheOptions
	// Limits are the limits of each tenant. A call over a limit fails with a *limit.Error before anything is sent. Nil
	// means no limits. Stores that share a limiter are counted together.
	//
	//   - Each written point counts, with the bytes of its payload, after all other checks: in Put, PutIfAbsent, PutMany, and
	//     when a sink enqueues it (not again at delivery). PutMany and EnqueueMany reject single points.
	//   - Each call that reads points counts as one read, even if the cache answers.
	//   - RangeLength bounds Range and Page. An interval without a start begins where retention ends, or in 1970; one without
	//     an end ends now.
	//   - FanOut bounds the concurrent requests of LatestMany and the calls of PrefixReader.
	//   - Datasets bounds Ensure if its context carries a tenant.
	//
	// Deletions, Verify and Ping are not limited.
	Limits *limit.Limiter
	// ProfileLimits also applies the limits in tenants' profiles (tenants.Profile.Limits), through Limits or, if it is
	// nil, a limiter of the store. For each limit the order is: the limiter's override for the tenant, the profile, the
	// limiter's default; 0 is no limit. Stores that share a limiter must use the same table.
	//
	// The store reads all profiles at the first call of a repository, a sink or a rollup, and checks for changes as it
	// does for retention classes. If it cannot read them, the last ones apply; calls of a store that has never read any
	// fail. If a stored document is not valid, the tenant's last valid one applies; without one, the tenant's calls
	// fail.
	ProfileLimits bool
	// RequireTenant makes every call of a repository or a sink fail with ErrNoTenant if its context carries no tenant.
	// Requests that bypass the service's edge (packages tenant/httptenant and tenant/grpctenant) then read and write
	// nothing. Calls of the store and of a writer need no tenant. A context with another tenant than the repository's
	// always fails.
	RequireTenant bool
	// Views reads and writes each tenant's rows through the tenant's authorized view, which EnsureView creates.
	// Bigtable itself then refuses access to all other rows. Three things differ:
	//
	//   - Calls for a tenant without a view fail with ErrNoView.
	//   - A writer's batch holds points of one tenant, so many small tenants need more requests.
	//   - Deletions apply only to the schema's families. Cells in other families remain; the store never reads them.
	//
	// Ping, Ensure and Verify use the table. Opening a view costs no request.
	Views bool
}

func (o StoreOptions) check() error {
	_, err := cursor.NewBox(o.CursorKeys)
	return cmp.Or(o.Timeouts.check(), o.Cache.check(), o.Telemetry.check(), err)
}

// Timeouts bound every call of a store. A call ends with its context or its timeout, whichever is earlier. Zero fields
// are the defaults; negative ones are refused with ErrInvalid.
type Timeouts struct {
	// Read bounds a read of one point or of the newest few. Zero is 10 seconds.
	Read time.Duration
	// Write bounds one write request with its retries. Zero is 10 seconds.
	Write time.Duration
	// Scan bounds calls whose work grows with the data: a range, including the time that the loop body takes, PutMany,
	// a deletion of many points, Ensure. Zero is 5 minutes.
	Scan time.Duration
}

func (t Timeouts) check() error {
	return cmp.Or(
		invalid.Range(ErrInvalid, "timeout Read", t.Read, 0, 0, orDefault),
		invalid.Range(ErrInvalid, "timeout Write", t.Write, 0, 0, orDefault),
		invalid.Range(ErrInvalid, "timeout Scan", t.Scan, 0, 0, orDefault),
	)
}

// orDefault is the limit of options whose zero value is a default.
const orDefault = "0 for the default, or more"

func (t Timeouts) resolve() bt.Timeouts {
	return bt.Timeouts{
		Read:  cmp.Or(t.Read, 10*time.Second),
		Write: cmp.Or(t.Write, 10*time.Second),
		Scan:  cmp.Or(t.Scan, 5*time.Minute),
	}
}
