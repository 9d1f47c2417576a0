// Package cost counts what the public calls of this module cost: requests, rows and bytes, on a connection that counts.
// TestDocument compares docs/cost.md with the counted costs. With -update it writes the file:
//
//	go test ./internal/proof/cost -run TestDocument -update
package cost
