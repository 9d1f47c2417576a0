package bt

import "context"

type upkeepKey struct{}

// WithUpkeep marks the requests of a context as background work of the store. Counters of the requests of calls leave
// them out.
func WithUpkeep(ctx context.Context) context.Context {
	return context.WithValue(ctx, upkeepKey{}, true)
}

// Upkeep reports whether a context is marked by WithUpkeep.
func Upkeep(ctx context.Context) bool { return ctx.Value(upkeepKey{}) != nil }
