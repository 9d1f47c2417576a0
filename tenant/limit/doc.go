// Package limit limits what each tenant of a store may do: points and bytes per second, entities, datasets, the size
// of a point, the length of a range, the requests of one read, and concurrent reads.
//
//	limiter, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 1000}}, limit.Options{})
//	store, err := tsdb.Open(ctx, tsdb.Config{…, StoreOptions: tsdb.StoreOptions{Limits: limiter}})
//
// A Table has the limits: defaults, and overrides by tenant. Parse reads a table from JSON; Limiter.Set replaces the
// table while the program runs. A call over a limit is refused immediately, with an *Error that names the limit, the
// usage, and when to try again.
//
// A tenant's own limits may also be in its profile: see tsdb.StoreOptions.ProfileLimits. An override in the table has
// precedence over the profile, and each limit in the profile has precedence over the default. In each of them, 0 is
// no limit. A limit that the profile does not name has its default. So give the table Defaults: they apply to tenants
// without a profile.
//
// All limits except Datasets apply per process, and are counted in its memory. They start again when the process
// starts. If several processes apply the same table, each of them allows the full limit. Table.Share gives each
// process its part.
package limit
