// Package edge holds what the HTTP examples share: bearer tokens, secret files, limits per tenant read from a file,
// shares of slots and memory, and a readiness check that clients cannot use to load the store.
package edge
