// Package limit limits what each tenant of a store may do: points and bytes per second, entities, datasets, the size of
// a point, the length of a range, the requests of one read, and concurrent reads.
//
//	limiter, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 1000}}, limit.Options{})
//	store, err := tsdb.Open(ctx, tsdb.Config{…, StoreOptions: tsdb.StoreOptions{Limits: limiter}})
//
// A Table has defaults, and overrides by tenant; Parse reads it from JSON, and Limiter.Set replaces it while the
// program runs. A call over a limit is refused immediately, with an *Error that names the limit, the usage, and when to
// try again.
//
// A tenant's own limits may be in its profile (tsdb.StoreOptions.ProfileLimits): after overrides, and before the
// defaults, which also apply to limits that the profile does not name. 0 is no limit.
//
// All limits except Datasets are counted in the memory of the process and start again with it. If several processes
// apply the same table, each allows the full limit: Table.Share gives each its part.
package limit
