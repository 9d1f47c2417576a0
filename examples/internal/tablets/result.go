package tablets

import "time"

// Requests are counted by kind. A read is one request, whatever it returns, and a write one row.
type Requests struct{ Reads, Writes float64 }

// Total returns all requests.
func (r Requests) Total() float64 { return r.Reads + r.Writes }

func (r *Requests) add(t *tablet, f float64) {
	r.Reads += t.reads * f
	r.Writes += t.writes * f
}

// Result is what happened in the simulated time, without the warm part.
type Result struct {
	// Offered is the sum of Served and Refused.
	Offered, Served, Refused Requests
	// ServedShare is the share of requests that were served: 1 if none was offered.
	ServedShare float64
	// Balanced is when, after the start of the warm part, the nodes first served all that was asked of them, for 10
	// minutes (or a sixth of the simulated time, if that is less). It is negative if that did not happen.
	Balanced time.Duration
	// HottestNode is the node with the most work in any minute.
	HottestNode HotNode
	// HottestTablet is the tablet with the most work between two rounds of balancing.
	HottestTablet HotTablet
	// Stored is how many bytes the table has at the end, and Tablets how many tablets.
	Stored  float64
	Tablets int
	// Splits, Merges and Moves were made from the start of the warm part on.
	Splits, Merges, Moves int
	// Need says how many nodes the load needs.
	Need Need
	// Columns are parts of the time, of equal length except the last.
	Columns []Column
	// Heat says where the load was.
	Heat *Heat
}

// HotNode is a minute of a node.
type HotNode struct {
	// Node counts from 0. At is when the minute began.
	Node int
	At   time.Duration
	// CPU is the share of the node's time that was used, at most 1, and Asked what would have been used if nothing were
	// refused.
	CPU, Asked float64
}

// HotTablet is a tablet during some seconds.
type HotTablet struct {
	First, Last int // its fronts, without Last
	At          time.Duration
	// CPU and Asked are shares of a node, as those of HotNode.
	CPU, Asked float64
}

// Column is what happened in a part of the time.
type Column struct {
	At time.Duration // when it begins
	// ServedShare is as that of Result.
	ServedShare float64
	// HottestCPU and MeanCPU are shares of a node's time, averaged over the column.
	HottestCPU, MeanCPU float64
	Tablets             int // at its end
}
