// Package telemetry watches a store: spans and metrics by OpenTelemetry's database conventions, logs that sum up repeated
// faults, and functions of the program's own.
//
// The conventions are those of https://opentelemetry.io/docs/specs/semconv/db/. What Bigtable
// has no entry for there is settled so: db.system.name is "gcp.bigtable", in the form of "gcp.spanner"; db.namespace is
// project and instance with | between them; db.operation.name is the name of the SDK's call; db.response.status_code is the
// name of the gRPC code, as rpc.response.status_code has it; error.type is that code, and where the service did not answer
// the name of the Go error.
//
// An operation is a call of the SDK with all its requests and retries; an attempt is one request to the data API. A store
// that nobody watches pays for a look at each of the providers, and allocates nothing.
package telemetry
