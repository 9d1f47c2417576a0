// Package soak holds a test that runs for as long as it is told to, with everything on at once.
//
//	go test ./internal/proof/soak                                          about 10 seconds of load
//	go test ./internal/proof/soak -soak 30m -timeout 50m -v                the standing soak
//	go test ./internal/proof/soak -soak 3m -soak.seed 7 -timeout 8m -v     one like an earlier one
//
// 5,000 devices of 200 tenants write through one writer with a journal, a few tenants far more than the others, some points
// late, some twice, some with another value the second time. Events are added to rollups by stream, by message and at most
// once. Readers ask every kind of question, a worker keeps the rollups, expired points are collected, and one tenant is
// erased. All the while the connection fails, loses answers, cuts streams, refuses entries, and is down for seconds, and the
// writer is closed with points in its journal and opened again. The table is on disk.
//
// What it shows:
//
//   - Nothing is lost: each point that was acknowledged is in the table, with the version that was put last, or is a dead
//     letter that the program was told of.
//   - Nothing is there that was not put, and nothing that was rejected.
//   - Nothing counts twice: what was added is what was acknowledged, to the event; of events of which nobody knows, at most
//     those. Derived rollups are what their points come to.
//   - Nothing crosses: each value names its tenant, device and time, and each read, and at the end each row of the table, is
//     held against them. Nothing of the erased tenant is left.
//   - Reads are right while all this goes on: a read shows what was delivered before it began, the newest point never goes
//     back, pages neither skip nor repeat, what has expired is not seen and what has not is.
//   - Memory stays within a figure that follows from the options, and does not grow; goroutines and the journal neither. What
//     the storage takes by C's allocator grows with its arenas, if MALLOC_ARENA_MAX=1 is not in the environment.
//
// The account of all this is a few bits for each quarter of a second and device, as values follow from tenant, device, time and
// version. The seed decides what is asked for; what the scheduler and the clock make of it differs from run to run.
package soak
