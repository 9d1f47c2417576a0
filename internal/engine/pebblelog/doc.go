// Package pebblelog finds damage in Pebble's logs before Pebble replays them, and writes the logs so that damage can be found.
//
// Pebble keeps two kinds of logs: the manifest, which lists the files of the database, and the write-ahead log. When it reads a
// chunk with a wrong checksum, it mostly takes that for the torn end that a crash leaves, and drops the rest of the log: a flipped
// bit in the middle silently loses every later write. So List.Check walks the logs first.
//
// # Torn or damaged
//
// A disk writes sectors of 512 bytes, in any order, until power fails. So a crash leaves a chunk that is cut short by the end of
// the file, or one with sectors that were never written and read as zeros. A chunk whose sectors were all written, with a wrong
// checksum, is damage.
//
// A hole of zeros may also be damage to synced data. Later chunks decide: each states how much of the log was on disk when it
// was written (see FS), and a manifest is synced after each record. If a later chunk states that the hole was on disk, the hole is
// damage. Otherwise no write after the hole was acknowledged, and the log ends there.
//
// Some damage looks exactly like a torn end: zeros over the last records of the newest log, if no later chunk states that they
// were synced; a newest log that was cut short; a wrong bit in the last record, if another sector of that record is all zeros; and
// a hole in a log of an older version, whose figures were too small.
//
// All this requires that a log is never written over an older one, where a torn chunk would end in old bytes: FS ensures that.
//
// # Pebble's version
//
// The package knows the format of logs of the version of Pebble in PebbleVersion, and which faults of it need a cure.
// TestPebbleVersion fails when go.mod requires another one. Then compare Pebble's record package with check.go, run the damage
// tests of the engine (TestLogDamageAnywhere, TestTornLogOpens, TestHoleInALog, TestDamageIsNoticed), and set PebbleVersion.
//
// The package can go once Pebble itself refuses to open a database with a damaged record that is not the last one of its manifest or
// write-ahead log, or with a log that is missing: when those tests pass without Check and OpenList. FS can go once Pebble reports
// a failed write of the log as an error instead of a panic, and can be told not to reuse logs.
package pebblelog

// PebbleVersion is the version of github.com/cockroachdb/pebble/v2 that this package was checked with.
const PebbleVersion = "v2.1.7"
