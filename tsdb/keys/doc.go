// Package keys checks the keys of a dataset before it has points, because keys cannot be changed afterwards.
//
// Advise takes a sample of the dataset's entities. It reports keys that create hot spots, prevent reads by prefix, show
// personal data or waste space. TakeSample selects such a sample from a tenant's stored data.
//
// The rules follow the public guides of Cloud Bigtable: https://cloud.google.com/bigtable/docs/schema-design,
// https://cloud.google.com/bigtable/docs/schema-design-time-series,
// https://cloud.google.com/bigtable/docs/performance and https://cloud.google.com/bigtable/quotas. They use the
// figures stated there, such as 10,000 writes a second for one server. They know neither the cluster nor the times of
// the load: Key Visualizer shows the real load.
//
// # Personal data
//
// Row keys are service data: they appear in logs, in errors and in Key Visualizer, and they outlive the things that
// they name. If tsdb.SchemaOptions.CheckKeys is CheckPersonal, a schema refuses to write entities whose parts look
// like a mail address or a payment card number:
//
//	tsdb.SchemaOptions{CheckKeys: keys.CheckPersonal}
//
// It catches mistakes, such as a device named after its owner's mail address. It proves nothing: names of people and
// phone numbers pass. If personal data must identify entities, use a keyed hash of it in keys. A Hasher makes such
// hashes.
package keys
