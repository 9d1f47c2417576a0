// Package pebblelog finds damage in Pebble's manifest and write-ahead log before Pebble replays them: Pebble mostly
// takes a wrong checksum for a crash's torn end, and drops the rest of the log.
//
// # Torn or damaged
//
// A disk writes sectors of 512 bytes, in any order, until power fails. So a crash cuts a chunk short, or leaves sectors
// of zeros. A wrong checksum without these is damage. A hole of zeros is damage if a later chunk states that it was on
// disk: each states how much of the log was (see FS), and a manifest is synced after each record. Otherwise no write
// after the hole was acknowledged, and the log ends there.
//
// Some damage looks like a torn end: zeros over the newest log's last records, if no later chunk states that they were
// synced; a newest log that was cut short; a wrong bit in the last record, if another of its sectors is all zeros; a
// hole in a log of an older version, whose figures were too small.
//
// # Pebble's version
//
// When TestPebbleVersion fails because go.mod requires another version, compare Pebble's record package with check.go,
// run TestLogDamageAnywhere, TestTornLogOpens, TestHoleInALog and TestDamageIsNoticed of the engine, and set
// PebbleVersion. The package can go once those tests pass without Check and OpenList; FS once Pebble returns an error
// for a failed write of the log instead of a panic, and has an option not to reuse logs.
package pebblelog

// PebbleVersion is the version of github.com/cockroachdb/pebble/v2 that this package was checked with.
const PebbleVersion = "v2.1.7"
