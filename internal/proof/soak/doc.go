// Package soak tests everything at once, and whether clients' memory grows. docs/maintaining.md has the commands.
//
// In TestSoak, 5,000 devices of 200 tenants write through one writer with a journal. Programs add events, readers make
// every kind of read, a worker computes rollups, garbage collection runs, and a tenant is erased. Meanwhile the
// connection fails, and the writer is reopened. The test checks:
//
//   - Each acknowledged point is in the table, as last put, or is a dead letter; nothing else appears.
//   - Added rollups hold exactly the acknowledged events, plus at most those of unknown outcome. Derived rollups match
//     their points.
//   - No row of another tenant is read, and none of the erased tenant is left.
//   - A read returns what was delivered before it began, the newest point never goes back, pages neither skip nor
//     repeat, and expired points do not appear.
//   - Memory, goroutines and the journal do not grow. The storage's C memory grows unless MALLOC_ARENA_MAX=1 is set.
package soak
