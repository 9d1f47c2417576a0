// Package bt makes all calls to Bigtable. Each call has a deadline, and is retried only if safe; each write has one
// true outcome.
//
// Connections have a guard (DialOptions): interceptors that record the service's answers and keep the official client
// from retrying. On a connection without it, outcomes that cannot be known are unknown.
package bt
