// Package sqlschema lets SQL read protobuf payloads: it stores the descriptors of their messages at the table, in a schema bundle of
// Bigtable. GoogleSQL and Bigtable Studio, logical views, and external tables of BigQuery then read the fields of points that
// codec.Proto has written:
//
//	err := sqlschema.Ensure(ctx, store, "payloads", readings, events)
//
// The query:
//
//	SELECT CAST(keep['p:pb'] AS `payloads.fleet.Reading`).temperature FROM measurements WHERE …
//
// docs/sql.md has queries for all that a store holds, and what such queries must filter by themselves. The Go API needs no bundle.
//
// # What a bundle holds
//
// A bundle has the files in which the messages are defined, and all files that these import, well-known types included, each
// once. Comments, services and reserved numbers are left out.
//
// A bundle only grows. Ensure adds the files, messages, fields and enum values that the bundle lacks, and removes none. So several
// programs can share a bundle, each with its own datasets, and in a rolling upgrade old programs leave the fields of new ones
// alone, in whatever order they start. Fields that a program has deleted stay readable in SQL, as long as old payloads have them.
//
// What cannot be in one bundle is a conflict, and nothing is changed: a field whose name, type or cardinality differs, a number
// with two fields, a message that has moved to another file, or two files of one path with different packages, syntax, or features
// of the file that change how payloads are read. In Go, a renamed field reads the same payloads; in SQL, queries use the name. After such a change, use a bundle with another ID: queries
// that name the old bundle continue to work. A bundle that nothing uses any more can be deleted with
// `gcloud bigtable schema-bundles delete`.
package sqlschema
