// Package tablets models how Bigtable spreads the load of a table over the nodes of a cluster, for loads that no machine
// at hand can produce. It answers, within about a second: is the load served, which node and which tablet are the hottest, how
// long does the table take to spread the load, and how many nodes does the hottest period need.
//
// The model knows no keys. It knows fronts: places in the key space where writes arrive, in the order of the keys. With
// keys that begin with the device, each device is a front that stays. With keys that begin with the time, the whole table is one
// front that moves forward. A tablet is a range of fronts. Tablets are split by size and by load, cold neighbours are merged,
// and tablets move from hot nodes to others. No split divides the writes of one front: they all reach one tablet, and a
// tablet is on one node.
//
//	result, err := tablets.Simulate(ctx, tablets.Load{Fronts: fronts}, tablets.Cluster{Nodes: 130}, tablets.Options{})
//
// What Google documents about a node is built in (see [Constants]). What it does not document is in [Assumptions], and
// [Compare] varies that to show whether the order of several designs depends on it.
//
// The model leaves out latency, queues and retries (what a node cannot do is refused), caches, replication, compaction, and what
// happens when a node fails. Data that expires is not removed.
package tablets
