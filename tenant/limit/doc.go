// Package limit limits what each tenant of a store may do.
//
//	limiter, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 1000}}, limit.Options{})
//	store, err := tsdb.Open(ctx, tsdb.Config{…, StoreOptions: tsdb.StoreOptions{Limits: limiter}})
//
// [Parse] reads a [Table] from JSON, and [Limiter.Set] replaces it while the program runs. A call over a limit is
// refused immediately, with an *[Error]. A tenant's profile may have limits, too: see tsdb.StoreOptions.ProfileLimits.
//
// All limits except Datasets are counted in memory and start again with the process. If several processes apply the
// same table, each allows the full limit: Table.Share gives each its part.
package limit
