// Package conformance holds one test suite over the official Bigtable client. It runs against the engine in process,
// against the engine over TCP, and, except for the fake's known faults, against the official fake.
//
// A randomized test compares the engine with the fake step by step. The flags -diff.seed and -diff.steps choose its
// run.
package conformance
