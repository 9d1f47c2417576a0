// Package keys checks the keys of a dataset before it has points, because keys cannot be changed afterwards.
//
// Advise takes a sample of the dataset's entities, and reports keys that create hot spots, prevent reads by prefix,
// show personal data or waste space. TakeSample selects a sample from a tenant's stored data.
//
// The rules and their figures follow the public guides of Cloud Bigtable:
// https://cloud.google.com/bigtable/docs/schema-design,
// https://cloud.google.com/bigtable/docs/schema-design-time-series, https://cloud.google.com/bigtable/docs/performance
// and https://cloud.google.com/bigtable/quotas. They know neither cluster nor load, which Key Visualizer shows.
//
// # Personal data
//
// Row keys appear in logs, in errors and in Key Visualizer, and they outlive what they name. With CheckPersonal a
// schema refuses to write entities whose parts look like a mail address or a payment card number:
//
//	tsdb.SchemaOptions{CheckKeys: keys.CheckPersonal}
//
// It catches mistakes and proves nothing: names of people and phone numbers pass. If personal data must identify
// entities, use a keyed hash of it, made by a Hasher.
package keys
