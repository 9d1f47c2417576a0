package tsdb

import (
	"cmp"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// StoreOptions are the options that every store has, however it is opened: [Open], [New], package embedded and package
// tsdbtest embed them in their own. The zero value is good.
type StoreOptions struct {
	// Timeouts bound every call. Zero fields mean the defaults.
	Timeouts Timeouts
	// Clock returns the current time, by which points expire and writes are too late or too early. Nil is time.Now.
	//
	// With package embedded in a folder, a clock that jumps ahead is not believed at once (ErrClock), and nothing expired is
	// removed until it is. In memory and in package tsdbtest every step of the clock counts as time that has passed.
	Clock func() time.Time
	// Telemetry says where traces, metrics and logs go. The zero value is OpenTelemetry's global providers, and no log.
	Telemetry Telemetry
	// CursorKeys seal the cursors of pages, so that they are safe to give to a client: 32 random bytes each, at most 16 keys.
	// The first key seals, all of them open. To rotate: add the new key last in every program, then move it to the front, and
	// remove the old key when no client holds one of its cursors. Without keys cursors are not sealed: see Repository.Page.
	// Keys are secrets: do not log the options.
	CursorKeys [][]byte
	// Cache is the last-value cache, for calls with a MaxStale. The zero value is no cache.
	Cache CacheOptions
	// Limits are the limits of each tenant. A call over a limit is refused before anything is sent, with a *limit.Error. Nil
	// is no limits. Stores may share a limiter, which then counts the calls of all of them together.
	//
	//   - Each point that is written counts, with the bytes of its payload, after all other checks: by Put, PutIfAbsent,
	//     PutMany, and by a sink when the point is enqueued (not again when it is delivered). PutMany and EnqueueMany reject
	//     single points.
	//   - Each call that reads points counts as one read, also where the cache answers.
	//   - RangeLength bounds Range and Page. An interval without a start begins where retention ends, or in 1970; one without
	//     an end ends now.
	//   - FanOut bounds the requests that LatestMany, LatestManyN, LatestUnder and Entities have under way.
	//   - Datasets bounds Ensure where its context carries a tenant.
	//
	// Deletions, Verify and Ping are not limited.
	Limits *limit.Limiter
	// ProfileLimits also takes limits from the profiles of tenants (tenants.Profile.Limits) and puts them into Limits, or into a
	// limiter of the store's own where Limits is nil. For each limit the limiter's override for the tenant counts first, then
	// the profile, then the limiter's default; 0 is no limit. Stores that share a limiter must be stores of one table.
	//
	// The store reads all profiles at the first call of a repository, a sink or a rollup, and looks for changes as it does for
	// retention classes. Where they cannot be read, the last ones apply, and calls of a store that never read any fail. Where
	// a stored document is not valid, the tenant's last valid one applies; without one, its calls fail with
	// limit.ErrInvalid.
	ProfileLimits bool
	// RequireTenant refuses, with ErrNoTenant, each call of a repository or a sink whose context carries no tenant. A request
	// that did not pass the service's edge (packages tenant/httptenant and tenant/grpctenant) then reads and writes nothing.
	// Calls of the store and of a writer need no tenant. A context with another tenant than the repository's is refused
	// always.
	RequireTenant bool
	// Views reads and writes each tenant's rows through the tenant's authorized view, which EnsureView makes. Bigtable itself
	// then refuses everything outside of it. Three things differ:
	//
	//   - Calls for a tenant without a view fail with ErrNoView.
	//   - A writer's batch holds points of one tenant, so many small tenants take more requests.
	//   - Deletions name the schema's families, and leave cells in other families, which nothing here reads.
	//
	// Ping, Ensure and Verify use the table. Opening a view costs no request.
	Views bool
}

func (o StoreOptions) check() error {
	if err := o.Timeouts.check(); err != nil {
		return err
	}
	if err := o.Cache.check(); err != nil {
		return err
	}
	if err := o.Telemetry.check(); err != nil {
		return err
	}
	_, err := cursor.NewBox(o.CursorKeys)
	return err
}

// Timeouts bound every call of a store. A call also ends with its context, whichever is earlier. Zero fields mean the defaults;
// negative ones are refused with ErrInvalid.
type Timeouts struct {
	// Read bounds a read of one point or the newest few. Zero is 10 seconds.
	Read time.Duration
	// Write bounds one request that writes, with its retries. Zero is 10 seconds.
	Write time.Duration
	// Scan bounds the calls whose work grows with the data: a range, with the time that its consumer takes, a PutMany, a
	// deletion of many points, an Ensure. Zero is 5 minutes.
	Scan time.Duration
}

func (t Timeouts) check() error {
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"Read", t.Read}, {"Write", t.Write}, {"Scan", t.Scan}} {
		if f.d < 0 {
			return invalid.New(ErrInvalid, "timeout "+f.name, f.d.String(), "0 for the default, or more")
		}
	}
	return nil
}

func (t Timeouts) resolve() bt.Timeouts {
	return bt.Timeouts{
		Read:  cmp.Or(t.Read, 10*time.Second),
		Write: cmp.Or(t.Write, 10*time.Second),
		Scan:  cmp.Or(t.Scan, 5*time.Minute),
	}
}
