// Package tablets models how Bigtable spreads the load of a table over the nodes of a cluster: is the load served,
// which node and which tablet are the hottest, how long does the table take to spread the load, and how many nodes does
// the hottest period need. docs/lab.md describes the model.
//
//	result, err := tablets.Simulate(ctx, tablets.Load{Fronts: fronts}, tablets.Cluster{Nodes: 130}, tablets.Options{})
//
// It knows no keys, only fronts: places in the key space where writes arrive. [Constants] are documented by Google,
// [Assumptions] are not, and [Compare] varies those to show whether the order of several designs depends on them. Data
// that expires is not removed.
package tablets
