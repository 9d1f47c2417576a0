// Package limit holds each tenant of a store to limits of its own: points and bytes a second, entities, datasets, the
// size of a point, the length of a range, the width of a fan-out, and reads at once.
//
//	limiter, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 1000}}, limit.Options{})
//	store, err := tsdb.Open(ctx, tsdb.Config{…, Limits: limiter})
//
// A Table says which limits are whose: defaults, and overrides by tenant. Parse reads one from JSON; Limiter.Set puts another
// one in its place while the program runs. What is over a limit is refused at once, with an *Error that names the limit,
// what was used, and when to try again.
//
// Limits of a tenant's own may stand in its profile, and not in the table: tsdb.StoreOptions.ProfileLimits. An override of the table is
// stronger than the profile, and the profile is stronger than the defaults, member by member. In each of them 0 is no limit, and
// what a profile does not name is that of the defaults. So give the table Defaults: they hold tenants without a profile.
//
// All limits but Datasets hold in one process, in its memory: they begin anew when it starts, and a fleet of processes that all apply the
// same table lets a tenant have as much in each of them. Table.Share gives each process of a fleet its part.
package limit
