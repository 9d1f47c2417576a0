// Package lab compares row keys before a table exists: see docs/lab.md.
//
// Keys of the form tenant#entity#~time, or tenant#salt(n)#entity#~time, run with a schema, a repository and a writer.
// Others run as raw rows of the official client, with the fewest rows and requests for each query:
//
//   - The latest point of an entity is one request: for one row where the entity comes before the time, else for all
//     newer rows, which the service reads backwards and filters.
//   - The latest points of n entities are n such requests, at the same time.
//   - A range is one request, with one range of keys for each salt that the query does not know.
//   - The newest points under a prefix are read from all rows under it that were written in the last two intervals.
package lab
