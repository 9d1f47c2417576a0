// Package heatmap records which row keys a program reads and writes: see docs/heatmap.md.
//
// A [Recorder] sees the requests of a store, of a raw Bigtable client, or of a server:
//
//	recorder, err := heatmap.NewRecorder(heatmap.Options{})
//	store, err := embedded.New(ctx, embedded.Options{Dir: "./data", DialOptions: recorder.DialOptions()})
//
// Each request takes about a tenth of a microsecond more. Recordings contain row keys, and so names of tenants and
// entities.
//
// # What is recorded
//
// Time is divided into at most 64 columns. A column counts rows, bytes and durations of reads, writes and failures
// exactly, and holds at most 1,024 random samples of each: key, bytes and duration of a row.
//
//   - A write is a row for which MutateRow, MutateRows, CheckAndMutateRow or ReadModifyWriteRow succeeded. Its bytes
//     are those of stored columns and values.
//   - A read is a row that ReadRows returned, with the bytes of its values; a request that returned no row is one read,
//     at the key where it begins.
//   - A failure is a row that was not written, or a read that failed, at the key where it begins, except calls that the
//     caller cancelled and streams without a connection.
//   - The duration of a row is that of its request up to the row, without the program's time.
//
// Each attempt counts. SQL queries, samples of row keys and calls of the session protocol are not recorded: create raw
// clients with tsdb.ClientConfig.
package heatmap
