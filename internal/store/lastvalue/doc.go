// Package lastvalue keeps the newest points of entities in memory, so that many callers share one read.
//
// What it promises: an answer holds all that was stored when the asked staleness began, and every write of this process
// that had ended by the time of the call. A read that was under way while a write ended answers those who waited for it
// before that, and is not kept.
package lastvalue
