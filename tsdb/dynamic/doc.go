// Package dynamic reads datasets that a program was not compiled with. tsdb.Store.Datasets lists them from the table's
// catalogue; this package shows what each one declares, and makes schemas that read its points.
//
//   - [Describe] returns a dataset as data: key fields, precision, codec tags, retention classes, heads, rollups.
//   - [Schema] makes a schema that decodes each payload by its tag into its fields, protobuf by descriptors that the
//     operator supplies.
//   - [Numbers] makes one that reads only one field of each payload, several times as fast.
//   - [Rollups] reads the buckets of rollups, without the functions of their measures.
//   - [Open] reads and writes single points of a tenant as bytes with their codec's tag, for operators' tools.
//
// Schemas of this package only read.
package dynamic
