package bt

import "context"

type upkeepKey struct{}

// WithUpkeep marks what is asked in a context as the store's own upkeep: no call asked for it, and it comes when its time has
// come. What counts the requests of calls leaves it out.
func WithUpkeep(ctx context.Context) context.Context {
	return context.WithValue(ctx, upkeepKey{}, true)
}

// Upkeep reports whether a request is the store's own upkeep.
func Upkeep(ctx context.Context) bool { return ctx.Value(upkeepKey{}) != nil }
