package tablets

import (
	"math"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// ErrInvalid is wrapped by the error of an argument that is not allowed.
var ErrInvalid = invalid.ErrInput

// Storage is what the nodes of a cluster store data on.
type Storage uint8

// SSD is the default.
const (
	SSD Storage = iota
	HDD
)

// node is what Google documents of a node: rows of 1 KB a second, bytes a second of scans, and the most bytes stored.
type node struct{ reads, writes, scan, stored float64 }

var nodes = [...]node{
	SSD: {reads: 17_000, writes: 14_000, scan: 220e6, stored: 5e12},
	HDD: {reads: 500, writes: 10_000, scan: 180e6, stored: 16e12},
}

// The documented shares of a node up to which a cluster that is optimized for latency is used.
const (
	targetCPU     = 0.6
	targetStorage = 0.6
)

const maxNodes = 1000

// slack is by how much a sum may be wrong by rounding.
const slack = 1e-9

// Cluster is where a table is stored: on 1 to 1,000 nodes.
type Cluster struct {
	Nodes   int
	Storage Storage
}

// NodesFor returns the number of nodes that store these bytes below the target of the storage, at least 1.
func (c Cluster) NodesFor(stored float64) int {
	return max(int(math.Ceil(stored/nodes[c.Storage].stored/targetStorage-slack)), 1)
}

// Front is a place in the key space where writes arrive, such as an entity whose keys begin with it and end with the
// time. No split divides its writes, because they are always at one end of its rows. The zero Front has no load.
type Front struct {
	// Writes is how many rows of RowBytes, with their keys, arrive in a second where the curve is 1.
	Writes, RowBytes float64
	// Curve is how the rate changes with time: 0 is constant, and n is Curves[n-1] of the load.
	Curve int
	// Moves says that each write has a greater key than those before it, because the key begins with the time, or with
	// a salt and the time.
	Moves bool
}

// Read is a query that is asked at a rate, of a range of fronts. Each request reads from one of them.
type Read struct {
	First, Last int // fronts, without Last
	// Rate is how many requests a second are made. Each reads Rows of RowBytes, or passes over them in a filter.
	Rate, Rows, RowBytes float64
	// ByWrites says that a front is read in proportion to its writes. Without it, all fronts of the range are read
	// alike.
	ByWrites bool
	// Old says that requests read any stored rows with equal chance, which are on all nodes. Without it, they read the
	// newest rows, which are where the writes are.
	Old bool
}

// Curve returns the factor of a rate at a time after the start. It is called once for each step of a simulation.
type Curve func(at time.Duration) float64

// Load is what clients do with a new table of one tablet. The zero Load does nothing.
type Load struct {
	Fronts []Front // in the order of their keys
	Reads  []Read
	Curves []Curve
}
