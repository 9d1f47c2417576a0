// Package bt makes all calls to Bigtable: scans, single and bulk writes with one true outcome each, and conditional
// writes. Each call has a deadline, and is retried only if that is safe.
//
// The official client also retries writes that must not be repeated, and does not say which rows of a failed bulk
// write were stored. So connections have a guard (DialOptions): interceptors that record the service's real answers
// and keep the client from retrying. This package then retries itself. On a connection without the guard, outcomes
// that cannot be known are reported as unknown.
package bt
