// Package soak holds a test that runs everything at once, for as long as a flag says, and one that checks whether the
// memory of clients grows. docs/maintaining.md has the commands of long runs.
//
// In TestSoak, 5,000 devices of 200 tenants write through one writer with a journal, a few far more than the others,
// some points late, twice or changed. Programs add events in all modes, readers make every kind of read, a worker
// computes rollups, garbage collection runs, and one tenant is erased. Meanwhile the connection fails in all ways, and
// the writer is closed with points in its journal and opened again. The test checks:
//
//   - Each acknowledged point is in the table, in the version that was put last, or is a dead letter that the program
//     was notified of. Nothing appears that was not put, or that was rejected.
//   - Added rollups hold exactly the acknowledged events, plus at most the events whose outcome is unknown. Derived
//     rollups match their points.
//   - No row of another tenant is read, and none of the erased tenant is left.
//   - A read returns what was delivered before it began, the newest point never goes back, pages neither skip nor
//     repeat, and expired points are not returned.
//   - Memory, goroutines and the journal do not grow. What the storage gets from C's allocator grows with its arenas,
//     unless MALLOC_ARENA_MAX=1 is in the environment.
package soak
