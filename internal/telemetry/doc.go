// Package telemetry reports a store's operations: spans and metrics by OpenTelemetry's database conventions, logs that
// summarize repeated faults, and callbacks of the program. docs/telemetry.md has all names.
//
// The conventions have no entry for Bigtable: db.system.name has the form of "gcp.spanner". A store without telemetry
// checks each provider and allocates nothing.
package telemetry
