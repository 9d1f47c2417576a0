// Package tablets models how Bigtable spreads the load of a table over the nodes of a cluster (docs/lab.md). It knows
// no keys, only [Front] values. Expired data is not removed.
package tablets
