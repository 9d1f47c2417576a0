package tablets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Constant is a number that the model uses.
type Constant struct {
	Name    string
	Meaning string
	// Value is with its unit.
	Value string
	// Source is the page where Google documents it. It is empty for what is assumed.
	Source string
	// Low and High are between what an assumed constant is drawn. They are empty for what is documented.
	Low, High string
}

const (
	pageOfPerformance = "https://cloud.google.com/bigtable/docs/performance"
	pageOfStorage     = "https://cloud.google.com/bigtable/docs/choosing-ssd-hdd"
	pageOfOverview    = "https://cloud.google.com/bigtable/docs/overview"
	pageOfHotTablets  = "https://cloud.google.com/bigtable/docs/hot-tablets"
)

// What Google does not document.
const (
	splitLoad = iota
	splitAfter
	capacity
	writeByBytes
	scanByBytes
)

// assumed are the assumed constants: their defaults and the ranges that they are drawn from, evenly on a logarithmic
// scale. Times are in seconds.
var assumed = [...]struct {
	name, meaning    string
	value, low, high float64
}{
	splitLoad:    {"SplitLoad", "share of a node's CPU from which a tablet with more than one front is split", 0.25, 0.1, 0.6},
	splitAfter:   {"SplitAfter", "how long it takes to split the tablets that exceed SplitLoad, and to divide all tablets over the nodes", 90, 25, 420},
	capacity:     {"Capacity", `share of the documented rates that a node reaches; Google says "up to"`, 1, 0.5, 1},
	writeByBytes: {"WriteByBytes", "part of the cost of writing a row of 1 KB that grows with its size", 0.3, 0.1, 0.8},
	scanByBytes:  {"ScanByBytes", "part of the cost of scanning a row of 1 KB that grows with its size", 0.5, 0.2, 0.9},
}

// assumptions has a value for each of them.
type assumptions [len(assumed)]float64

func defaults() (a assumptions) {
	for i, c := range assumed {
		a[i] = c.value
	}
	return a
}

// draw returns assumptions that are drawn from their ranges.
func draw(rnd *rand.Rand) (a assumptions) {
	for i, c := range assumed {
		a[i] = c.low * math.Pow(c.high/c.low, rnd.Float64())
	}
	return a
}

// Constants returns every number of the model, first those that Google documents.
func Constants() []Constant {
	out := []Constant{
		{Name: "reads of a node", Meaning: "rows of 1 KB a second", Value: "17,000 on SSD, 500 on HDD", Source: pageOfPerformance},
		{Name: "writes of a node", Meaning: "rows of 1 KB a second, instead of reads", Value: "14,000 on SSD, 10,000 on HDD", Source: pageOfPerformance},
		{Name: "scans of a node", Meaning: "instead of reads and writes", Value: "220 MB/s on SSD, 180 MB/s on HDD", Source: pageOfPerformance},
		{Name: "target of the CPU", Meaning: "most of a node's CPU where latency matters", Value: "60%", Source: pageOfPerformance},
		{Name: "target of the storage", Meaning: "most of a node's storage where latency matters", Value: "60%", Source: pageOfPerformance},
		{Name: "storage of a node", Meaning: "most bytes that a cluster stores for each node", Value: "5 TB on SSD, 16 TB on HDD", Source: pageOfStorage},
		{Name: "a tablet's part of a node", Meaning: "a tablet is on one node, and may use all of its CPU", Value: "up to 100%", Source: pageOfHotTablets},
		{Name: "splits and moves", Meaning: "busy tablets are split, and tablets move between nodes; not documented: when", Value: "", Source: pageOfOverview},
	}
	for i, c := range assumed {
		text := func(v float64) string { return fmt.Sprintf("%.0f%%", v*100) }
		if i == splitAfter {
			text = func(v float64) string { return time.Duration(v * float64(time.Second)).String() }
		}
		out = append(out, Constant{Name: c.name, Meaning: c.meaning, Value: text(c.value), Low: text(c.low), High: text(c.high)})
	}
	return out
}

const kilobyte = 1000 // the size of a row in Google's figures

// costs are what requests cost, in seconds of a node.
type costs struct {
	write, writeByte float64 // of a row that is written
	read             float64 // of a request
	row, rowByte     float64 // of a row that is read
}

// costs returns what follows from the documented rates. A read of one row of 1 KB, a write of one, and the scan of one
// cost what the documented rates say. In between, a read of n rows costs a request, and n times the row of a scan.
func (a assumptions) costs(n node) costs {
	scan := kilobyte / n.scan / a[capacity]
	write := 1 / n.writes / a[capacity]
	return costs{
		write: write * (1 - a[writeByBytes]), writeByte: write * a[writeByBytes] / kilobyte,
		read: 1/n.reads/a[capacity] - scan,
		row:  scan * (1 - a[scanByBytes]), rowByte: scan * a[scanByBytes] / kilobyte,
	}
}

func (c *costs) ofWrite(bytes float64) float64      { return c.write + bytes*c.writeByte }
func (c *costs) ofRead(rows, bytes float64) float64 { return c.read + rows*(c.row+bytes*c.rowByte) }
