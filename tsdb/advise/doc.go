// Package advise checks the key of a dataset before it has points, because keys cannot be changed afterwards. Keys
// takes a sample of the dataset's entities. It reports keys that create hot spots, prevent reads by prefix, show
// personal data or waste space. TakeSample selects such a sample from a tenant's stored data.
//
// The rules follow the public guides of Cloud Bigtable: https://cloud.google.com/bigtable/docs/schema-design,
// https://cloud.google.com/bigtable/docs/schema-design-time-series,
// https://cloud.google.com/bigtable/docs/performance and https://cloud.google.com/bigtable/quotas. They use the
// figures stated there, such as 10,000 writes a second for one server. They know neither the cluster nor the times of
// the load: Key Visualizer shows the real load.
package advise
