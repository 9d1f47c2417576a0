// Package lastvalue caches the newest points of entities in memory, so that many callers share one read.
//
// tsdb.MaxStale says what an answer contains. A read during which a write ended answers only callers that already
// waited for it, and is not cached.
package lastvalue
