// Package firstrow lets a read ask an engine in the same process for only the first row of each range.
package firstrow

import "context"

type key struct{}

// Only returns a context whose reads ask for at most one row of each range of their row set, the first one that the
// filter lets through. Ranges that touch or overlap count as one. Connections to other services return all rows.
func Only(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Wanted reports whether a read asks for the first rows only.
func Wanted(ctx context.Context) bool { return ctx.Value(key{}) != nil }
