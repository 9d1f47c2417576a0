// Package cost counts what the public calls of this module cost: requests, rows and bytes, on a connection that counts.
// TestDocument compares docs/cost.md with the counted costs, and with -update writes it.
package cost
