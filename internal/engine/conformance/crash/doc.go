// Package crash holds the tests that take the engine's storage away: a writing process that is killed, a machine that
// loses what was not synced, a disk that is full, a process without files left, and files that are damaged. What was
// answered must be there afterwards, nothing may be half there, and damage must be reported.
//
// -crash.rounds and -crash.faults choose how often that happens, -crash.seed when.
package crash
