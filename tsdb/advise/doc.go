// Package advise judges the key of a dataset before there are points, since keys cannot be changed afterwards. Keys takes a
// sample of the dataset's entities and says which of them would make a hot spot, break reads by prefix, show personal data or
// waste space. TakeSample picks such a sample from what a tenant has stored.
//
// The rules follow the public guides of Cloud Bigtable: https://cloud.google.com/bigtable/docs/schema-design,
// https://cloud.google.com/bigtable/docs/schema-design-time-series, https://cloud.google.com/bigtable/docs/performance and
// https://cloud.google.com/bigtable/quotas. They use the figures stated there, such as 10,000 writes a second for one server.
// They know neither the cluster nor when the load comes: Key Visualizer shows what really happens.
package advise
