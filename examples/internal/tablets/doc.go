// Package tablets models how Bigtable spreads the load of a table over the nodes of a cluster: is the load served,
// which node and tablet are the hottest, how long does spreading take, and how many nodes does the hottest period need.
// docs/lab.md describes the model.
//
//	result, err := tablets.Simulate(ctx, tablets.Load{Fronts: fronts}, tablets.Cluster{Nodes: 130}, tablets.Options{})
//
// It knows no keys, only fronts: places in the key space where writes arrive. Google documents [Constants], not
// [Assumptions]; [Compare] varies those to show whether the order of designs depends on them. Expired data is not
// removed.
package tablets
