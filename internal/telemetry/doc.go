// Package telemetry reports a store's operations: spans and metrics by OpenTelemetry's database conventions, logs that
// summarize repeated faults, and callbacks of the program.
//
// The conventions have no entry for Bigtable, so this package decides: db.system.name has the form of "gcp.spanner".
// docs/telemetry.md has all names.
//
// A store without telemetry checks each provider and allocates nothing.
package telemetry
