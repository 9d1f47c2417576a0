// Package conformance tests the engine with the official Bigtable client, in process and over TCP, and, but for known
// faults, the official fake. A randomized test compares both step by step (-diff.seed, -diff.steps).
package conformance
