// Package telemetry reports a store's operations: spans and metrics by OpenTelemetry's database conventions, logs that
// summarize repeated faults, and callbacks of the program.
//
// The conventions (https://opentelemetry.io/docs/specs/semconv/db/) have no entry for Bigtable, so this package
// decides: db.system.name is "gcp.bigtable", in the form of "gcp.spanner"; db.namespace is project and instance with |
// between them; db.operation.name is the name of the SDK's call; db.response.status_code is the name of the gRPC code;
// error.type is that code or, if the service did not answer, the name of the Go error.
//
// An operation is a call of the SDK with all its requests and retries; an attempt is one request to the data API. A
// store without telemetry checks each of the providers and allocates nothing.
package telemetry
