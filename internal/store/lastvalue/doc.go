// Package lastvalue caches the newest points of entities in memory, so that many callers share one read.
//
// It guarantees that an answer contains everything that was stored when the allowed staleness began, and every write of
// this process that had ended at the time of the call. A read that was running while a write ended answers the callers
// that waited for it before that, and its result is not cached.
package lastvalue
