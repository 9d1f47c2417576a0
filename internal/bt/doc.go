// Package bt makes all calls to Bigtable: scans, single and bulk writes with one true outcome each, and conditional
// writes. Each call has a deadline, and is retried only if that is safe.
//
// Connections have a guard (DialOptions): interceptors that record the service's answers and keep the official client
// from retrying. On a connection without it, outcomes that cannot be known are unknown.
package bt
