// Package bt holds every conversation with Bigtable: scans, single and bulk writes with one true outcome each, and
// conditional writes; each within a deadline, each retried only where that is safe.
//
// The official client retries by itself, without a bound of its own, additions included, and of a bulk write that fails as
// a whole it cannot say which rows landed. So a connection carries the guard (DialOptions): interceptors that note what
// the service really answered and keep the client from retrying. The retries are then made here, where it is known what
// may be repeated. Over a connection without the guard, what cannot be known is reported as unknown.
package bt
