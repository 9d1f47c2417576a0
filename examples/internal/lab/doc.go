// Package lab compares row keys before a table exists. One YAML file describes a workload (tenants, datasets, queries), the
// candidates for its row key, and what is expected of them. The lab then does what Google's guide to schema design advises: it
// loads a table heavily, runs an hour of the workload, and shows where the load goes.
//
//	plan, err := lab.Parse(file)            // explains each mistake by line
//	report, err := plan.Run(ctx, lab.RunOptions{})
//	err = report.WriteText(os.Stdout)
//
// [Plan.Run] executes real requests, at a small scale, on the embedded engine in a temporary folder, or on a scratch table of
// Cloud Bigtable. It counts requests and rows of each query, measures latencies, and records a heatmap. [Plan.Simulate] computes the whole
// workload, at full size, with a model of tablets and nodes. [Plan.Compare] does both, ranks the candidates and says what to change.
//
// [Template] and [Workload] are files to begin with, and [Describe] writes one for what a store has. The command line
// is "tidectl lab". See docs/lab.md for the fields of the file.
//
// # Row keys of candidates
//
// A candidate's key is a list of elements with # between them: tenant, dataset, the names of key fields or entity for all of
// them, time, ~time (newest first) and salt(n). Keys of the form tenant#entity#~time, or tenant#salt(n)#entity#~time, are this
// module's own: the lab runs them with a schema, a repository and a writer. It runs other keys with raw rows and the official
// client, with the fewest rows and requests that each query needs:
//
//   - The latest point of an entity is one request for one row where the entity comes before the time. Where the time comes
//     first, the service reads backwards and filters, over all rows that are newer.
//   - The latest points of n entities are n such requests, at the same time.
//   - A range is one request, with one range of keys for each salt that the query does not know.
//   - The newest point of each entity under a prefix is read from all rows under it that were written in the last two intervals.
//
// # What is measured
//
// Rows are counted by the service itself: each read asks for its statistics, which state how many rows it looked at, also those
// that a filter dropped. Requests are counted on the connection. Latencies are those of this machine's engine, or those of
// Bigtable, and a report never mixes the two: latencies on the engine say which of two candidates is slower, and not how long
// Bigtable takes.
package lab
