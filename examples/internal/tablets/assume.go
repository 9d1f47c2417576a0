package tablets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Assumptions are what Google does not document. A zero field has the default that Constants names.
type Assumptions struct {
	// SplitBytes is the size from which a tablet is split.
	SplitBytes float64
	// SplitLoad is the share of a node that a tablet may use before it is split, and SplitAfter for how long it must
	// exceed it.
	SplitLoad  float64
	SplitAfter time.Duration
	// MergeBelow is the part of SplitLoad and of SplitBytes that two neighbours must not reach together for MergeAfter
	// before they are merged.
	MergeBelow float64
	MergeAfter time.Duration
	// BalanceEvery is how often tablets are moved, Moves how many a node gives away each time, and Tolerance the
	// difference between the loads of two nodes, in shares of a node, up to which nothing moves.
	BalanceEvery time.Duration
	Moves        float64
	Tolerance    float64
	// MoveTime is how long a tablet serves nothing while it moves.
	MoveTime time.Duration
	// Capacity is the share of the documented rates that a node reaches.
	Capacity float64
	// WriteByBytes is the part of the cost of writing a row of 1 KB that grows with the size of the row. ScanByBytes is
	// the same of a row that is scanned.
	WriteByBytes float64
	ScanByBytes  float64
}

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
	pageOfScaling     = "https://cloud.google.com/bigtable/docs/scaling"
	pageOfHotTablets  = "https://cloud.google.com/bigtable/docs/hot-tablets"
)

// assumed is an assumed constant: what it means, where it is, its default and its range. It is drawn evenly on a
// logarithmic scale.
type assumed struct {
	name, meaning    string
	number           func(a *Assumptions) *float64
	time             func(a *Assumptions) *time.Duration
	value, low, high float64
	unit             string
}

var assumptions = []assumed{
	{
		name: "SplitBytes", meaning: "size from which a tablet is split",
		number: func(a *Assumptions) *float64 { return &a.SplitBytes }, value: 1e9, low: 2e8, high: 8e9, unit: "MB",
	},
	{
		name: "SplitLoad", meaning: "share of a node's CPU from which a tablet with more than one front is split",
		number: func(a *Assumptions) *float64 { return &a.SplitLoad }, value: 0.25, low: 0.1, high: 0.6, unit: "%",
	},
	{
		name: "SplitAfter", meaning: "how long a tablet exceeds SplitLoad before it is split",
		time: func(a *Assumptions) *time.Duration { return &a.SplitAfter }, value: float64(time.Minute), low: float64(15 * time.Second), high: float64(4 * time.Minute),
	},
	{
		name: "MergeBelow", meaning: "part of SplitLoad and SplitBytes that the sum of two cold neighbours is below",
		number: func(a *Assumptions) *float64 { return &a.MergeBelow }, value: 0.25, low: 0.1, high: 0.5, unit: "%",
	},
	{
		name: "MergeAfter", meaning: "how long two small neighbours are cold before they are merged",
		time: func(a *Assumptions) *time.Duration { return &a.MergeAfter }, value: float64(time.Hour), low: float64(10 * time.Minute), high: float64(24 * time.Hour),
	},
	{
		name: "BalanceEvery", meaning: "how often tablets are moved from hot nodes to others",
		time: func(a *Assumptions) *time.Duration { return &a.BalanceEvery }, value: float64(30 * time.Second), low: float64(10 * time.Second), high: float64(3 * time.Minute),
	},
	{
		name: "Moves", meaning: "how many tablets a node gives away each time",
		number: func(a *Assumptions) *float64 { return &a.Moves }, value: 2, low: 1, high: 8,
	},
	{
		name: "Tolerance", meaning: "difference of load between two nodes, in shares of a node, up to which nothing moves",
		number: func(a *Assumptions) *float64 { return &a.Tolerance }, value: 0.05, low: 0.02, high: 0.2, unit: "%",
	},
	{
		name: "MoveTime", meaning: "how long a tablet serves nothing while it moves",
		time: func(a *Assumptions) *time.Duration { return &a.MoveTime }, value: float64(time.Second), low: float64(200 * time.Millisecond), high: float64(5 * time.Second),
	},
	{
		name: "Capacity", meaning: "share of the documented rates that a node reaches; Google says \"up to\"",
		number: func(a *Assumptions) *float64 { return &a.Capacity }, value: 1, low: 0.5, high: 1, unit: "%",
	},
	{
		name: "WriteByBytes", meaning: "part of the cost of writing a row of 1 KB that grows with its size",
		number: func(a *Assumptions) *float64 { return &a.WriteByBytes }, value: 0.3, low: 0.1, high: 0.8, unit: "%",
	},
	{
		name: "ScanByBytes", meaning: "part of the cost of scanning a row of 1 KB that grows with its size",
		number: func(a *Assumptions) *float64 { return &a.ScanByBytes }, value: 0.5, low: 0.2, high: 0.9, unit: "%",
	},
}

// text returns a value with its unit.
func (c *assumed) text(v float64) string {
	switch {
	case c.time != nil:
		return time.Duration(v).String()
	case c.unit == "MB":
		return fmt.Sprintf("%.0f MB", v/1e6)
	case c.unit == "%":
		return fmt.Sprintf("%.0f%%", v*100)
	}
	return fmt.Sprintf("%.0f", v)
}

func (c *assumed) get(a *Assumptions) float64 {
	if c.time != nil {
		return float64(*c.time(a))
	}
	return *c.number(a)
}

func (c *assumed) set(a *Assumptions, v float64) {
	if c.time != nil {
		*c.time(a) = time.Duration(v)
		return
	}
	*c.number(a) = v
}

// Each assumption may be set to less and more than the range that it is drawn from, by this factor, but a share to no
// more than 1.
const beyond = 10

func (c *assumed) limits() (low, high float64) {
	low, high = c.low/beyond, c.high*beyond
	if c.unit == "%" {
		high = 1
	}
	return low, high
}

func (a Assumptions) withDefaults() (Assumptions, error) {
	for i := range assumptions {
		c := &assumptions[i]
		v := c.get(&a)
		if v == 0 {
			c.set(&a, c.value)
			continue
		}
		if low, high := c.limits(); !(v >= low && v <= high) {
			value := fmt.Sprint(v)
			if c.time != nil {
				value = time.Duration(v).String()
			}
			return a, invalid.New(ErrInvalid, "Assume."+c.name, value, fmt.Sprintf("0 for %s, or %s to %s", c.text(c.value), c.text(low), c.text(high)))
		}
	}
	return a, nil
}

// draw returns assumptions that are drawn from their ranges.
func draw(rnd *rand.Rand) (a Assumptions) {
	for i := range assumptions {
		c := &assumptions[i]
		c.set(&a, c.low*math.Pow(c.high/c.low, rnd.Float64()))
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
		{Name: "splits, merges and moves", Meaning: "busy or large tablets are split, small ones with little load are merged, and tablets move between nodes; not documented: when", Value: "", Source: pageOfOverview},
		{Name: "node scaling factor", Meaning: "two nodes work as one of twice the size", Value: "1 or 2", Source: pageOfScaling},
	}
	for i := range assumptions {
		c := &assumptions[i]
		out = append(out, Constant{Name: c.name, Meaning: c.meaning, Value: c.text(c.value), Low: c.text(c.low), High: c.text(c.high)})
	}
	return out
}

// costs are what requests cost, in seconds of a node.
type costs struct {
	write, writeByte float64 // of a row that is written
	read             float64 // of a request
	row, rowByte     float64 // of a row that is read
}

// costs returns what follows from the documented rates. A read of one row of 1 KB, a write of one, and the scan of one
// cost what the documented rates say. In between, a read of n rows costs a request, and n times the row of a scan.
func (a *Assumptions) costs(n node) costs {
	scan := kilobyte / n.scan / a.Capacity
	write := 1 / n.writes / a.Capacity
	return costs{
		write: write * (1 - a.WriteByBytes), writeByte: write * a.WriteByBytes / kilobyte,
		read: 1/n.reads/a.Capacity - scan,
		row:  scan * (1 - a.ScanByBytes), rowByte: scan * a.ScanByBytes / kilobyte,
	}
}

func (c *costs) ofWrite(bytes float64) float64      { return c.write + bytes*c.writeByte }
func (c *costs) ofRow(bytes float64) float64        { return c.row + bytes*c.rowByte }
func (c *costs) ofRead(rows, bytes float64) float64 { return c.read + rows*c.ofRow(bytes) }
