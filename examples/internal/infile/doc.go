// Package infile reads files of points: CSV, NDJSON, line protocol and Parquet, as they are or packed with gzip or
// zstd. Reading can continue at a position of an earlier run. A record has at most 1 MiB, so memory does not grow with
// the file.
package infile
