// Package rollupadd adds events to the rows of a rollup, each once even if responses are lost: by a high-water mark for
// each stream, a marker for each message, or an idempotency token. docs/format.md specifies the cells.
package rollupadd
