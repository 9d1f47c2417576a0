// Package configs tests that many set-ups of a store answer the same after the same operations. CONTRIBUTING.md has its
// commands.
//
// A set-up is drawn from the seed: codec, key fields, precision, salts, heads, first-wins, merging, retention, rollups,
// cache, writer, journal, views, cursors, concurrency, connection, and scans of one moment or weak ones. A map has the
// answers. After some operations, the newest point of each entity is read in all ways, at the end everything.
package configs
