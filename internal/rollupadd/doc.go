// Package rollupadd adds events to the rows of a rollup, so that each event counts once even if responses of the
// service are lost: by a high-water mark for each stream, a marker for each message, or a single attempt.
// docs/format.md specifies the cells.
package rollupadd
