// Package cost counts what the public calls of this module cost: requests, rows and bytes, on a connection that counts. Its
// tests write docs/cost.md, and fail where that file is not what they have counted:
//
//	go test ./internal/proof/cost -run TestDocument -update
package cost
