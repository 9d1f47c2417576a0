// Package configs tests that set-ups of a store, drawn from a seed, answer the same after the same operations.
// CONTRIBUTING.md has its commands.
//
// A map has the answers. After some operations each entity's newest point is read in all ways, at the end everything.
package configs
