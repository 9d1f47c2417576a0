// Package conformance is a test suite over the official Bigtable client. It runs against the engine in process and over
// TCP, and, but for the fake's known faults, against the official fake.
//
// A randomized test compares the engine with the fake step by step. The flags -diff.seed and -diff.steps choose its
// run.
package conformance
