// Package lastvalue caches the newest points of entities in memory, so that many callers share one read.
//
// An answer contains everything that was stored when the allowed staleness began, and every write of this process that
// had ended at the time of the call. A read during which a write ended answers only callers that already waited for it,
// and is not cached.
package lastvalue
