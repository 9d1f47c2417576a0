// Package conformance holds the tests that say what a Bigtable is: one suite over the official client, run against the
// engine in process, against the engine over TCP, and, for what it does right, against the official fake.
//
// A randomized test compares the engine with the fake step by step; -diff.seed and -diff.steps choose its run.
package conformance
