package tablets

import (
	"fmt"
	"math"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Storage is what the nodes of a cluster store data on.
type Storage uint8

// SSD is the default.
const (
	SSD Storage = iota
	HDD
)

var storageNames = [...]string{SSD: "ssd", HDD: "hdd"}

// String returns "ssd" or "hdd".
func (s Storage) String() string {
	if int(s) < len(storageNames) {
		return storageNames[s]
	}
	return fmt.Sprint(uint8(s))
}

// node is what Google documents of a node: rows of 1 KB a second, bytes a second of scans, and the most bytes stored.
type node struct{ reads, writes, scan, stored float64 }

var nodes = [...]node{
	SSD: {reads: 17_000, writes: 14_000, scan: 220e6, stored: 5e12},
	HDD: {reads: 500, writes: 10_000, scan: 180e6, stored: 16e12},
}

// The documented shares of a node up to which a cluster that is optimized for latency is used.
const (
	latencyCPU     = 0.6
	latencyStorage = 0.6
)

// Cluster is where a table is stored.
type Cluster struct {
	// Nodes is from 1 to 1,000.
	Nodes   int
	Storage Storage
	// Double says that the cluster has the node scaling factor 2: two nodes work as one of twice the size. Nodes
	// is then even.
	Double bool
	// TargetCPU is the share of a node's CPU up to which the hottest node is used, from 0.01 to 1. Zero is 0.6, as
	// Google advises where latency matters.
	TargetCPU float64
}

const maxNodes = 1000

func (c Cluster) check() error {
	if err := invalid.Range(ErrInvalid, "Nodes", c.Nodes, 1, maxNodes, "1 to 1000"); err != nil {
		return err
	}
	if int(c.Storage) >= len(nodes) {
		return invalid.New(ErrInvalid, "Storage", c.Storage.String(), "SSD or HDD")
	}
	if c.Double && c.Nodes%2 != 0 {
		return invalid.New(ErrInvalid, "Nodes", fmt.Sprint(c.Nodes), "an even number, because Double joins nodes in pairs")
	}
	if c.TargetCPU != 0 && !(c.TargetCPU >= 0.01 && c.TargetCPU <= 1) {
		return invalid.New(ErrInvalid, "TargetCPU", fmt.Sprint(c.TargetCPU), "0 for 0.6, or 0.01 to 1")
	}
	return nil
}

func (c Cluster) target() float64 {
	if c.TargetCPU == 0 {
		return latencyCPU
	}
	return c.TargetCPU
}

// NodesFor returns the number of nodes that store these bytes below the target of the storage, at least 1.
func (c Cluster) NodesFor(stored float64) int {
	n := max(int(math.Ceil(stored/nodes[c.Storage].stored/latencyStorage-slack)), 1)
	return (n + c.size() - 1) / c.size() * c.size()
}

// size is how many nodes work as one.
func (c Cluster) size() int {
	if c.Double {
		return 2
	}
	return 1
}

// Options configure a simulation. The zero value simulates an hour of a new table.
type Options struct {
	// Duration is what is simulated, from a minute to 31 days. Zero is an hour.
	Duration time.Duration
	// Warm is how long the load runs before that, with each curve at its greatest value, at most a day. Only
	// Result.Balanced includes it.
	Warm time.Duration
	// Step is how long a step is, from a second to 10 minutes. What happens within a step is averaged. Zero is 10
	// seconds up to a day, and more for longer durations. There are at most 20,000 steps.
	Step time.Duration
	// Columns is into how many parts of equal length Result divides the time, up to 256. Zero is 60.
	Columns int
	// Lines is into how many ranges of fronts Result.Heat divides the fronts, up to 1,000. Zero is 180.
	Lines int
	// Seed decides where the first tablets are. The same seed gives the same result.
	Seed uint64
	// Assume holds what Google does not document. Zero fields have their documented defaults.
	Assume Assumptions
}

const (
	minDuration = time.Minute
	maxDuration = 31 * 24 * time.Hour
	maxWarm     = 24 * time.Hour
	minStep     = time.Second
	maxStep     = 10 * time.Minute
	maxSteps    = 20_000
	maxColumns  = 256
	maxLines    = 1000
)

// withDefaults returns the options with all fields set, or an error.
func (o Options) withDefaults() (Options, error) {
	if o.Duration == 0 {
		o.Duration = time.Hour
	}
	if err := invalid.Range(ErrInvalid, "Duration", o.Duration, minDuration, maxDuration, "1m to 744h"); err != nil {
		return o, err
	}
	if err := invalid.Range(ErrInvalid, "Warm", o.Warm, 0, maxWarm, "0 to 24h"); err != nil {
		return o, err
	}
	if o.Step == 0 {
		o.Step = max(10*time.Second, ((o.Duration+o.Warm)/(maxSteps/2) + time.Second).Truncate(time.Second))
	}
	if err := invalid.Range(ErrInvalid, "Step", o.Step, minStep, maxStep, "0 for the default, or 1s to 10m"); err != nil {
		return o, err
	}
	if n := (o.Duration + o.Warm) / o.Step; n > maxSteps {
		return o, invalid.New(ErrInvalid, "Step", o.Step.String(), fmt.Sprintf("at least %v, so that there are at most %d steps", ((o.Duration+o.Warm)/maxSteps+time.Second).Truncate(time.Second), maxSteps))
	}
	if o.Columns == 0 {
		o.Columns = 60
	}
	if err := invalid.Range(ErrInvalid, "Columns", o.Columns, 1, maxColumns, "0 for the default, or up to 256"); err != nil {
		return o, err
	}
	if o.Lines == 0 {
		o.Lines = 180
	}
	if err := invalid.Range(ErrInvalid, "Lines", o.Lines, 1, maxLines, "0 for the default, or up to 1000"); err != nil {
		return o, err
	}
	var err error
	o.Assume, err = o.Assume.withDefaults()
	return o, err
}
