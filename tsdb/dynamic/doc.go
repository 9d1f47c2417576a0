// Package dynamic reads datasets that a program was not compiled with, of tsdb.Store.Datasets. Its schemas only read.
//
//   - [Describe] returns a dataset as data.
//   - [Schema] makes a schema that decodes each payload by its tag into its fields, protobuf by descriptors that the
//     operator supplies.
//   - [Numbers] makes one that reads only one field of each payload, several times as fast.
//   - [Rollups] reads the buckets of rollups, without the functions of their measures.
//   - [Open] reads and writes single points of a tenant as bytes with their codec's tag, for operators' tools.
package dynamic
