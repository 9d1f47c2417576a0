// Package tablets models how Bigtable spreads the load of a table over the nodes of a cluster: is the load served,
// which node and tablet are the hottest, how long does spreading take, and how many nodes does the hottest period need.
// docs/lab.md describes the model.
//
//	result, err := tablets.Simulate(ctx, tablets.Load{Fronts: fronts}, tablets.Cluster{Nodes: 130}, tablets.Options{})
//
// It knows no keys, only [Front] values. Expired data is not removed.
package tablets
