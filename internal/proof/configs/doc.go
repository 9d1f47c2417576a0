// Package configs holds a test that runs one sequence of operations in many set-ups of a store, and asks all of them
// the same questions. CONTRIBUTING.md has its commands.
//
// A set-up is drawn from the seed: codec, key fields, precision, salts, heads, first-wins, merging, retention, rollups,
// cache, writer, journal, views, cursors, concurrency, connection, and scans of one moment or weak ones. The operations
// do not depend on it, and neither do the answers, which a map has. After some operations, the newest point of each
// entity is read in all ways: all answer the same. So does everything that is stored.
package configs
