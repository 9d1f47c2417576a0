package tsdbtest

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// z99 is the standard normal distribution's 99th percentile.
const z99 = 2.3263478740408408

// Latency is a distribution of delays with a tail, as networks and servers have: log-normal through its median and 99th
// percentile, and a small share of calls that hang for long. Draw gives one for DelayBy.
type Latency struct {
	// P50 and P99 are the median and the 99th percentile. A P99 below P50 stands for P50: all calls take as long. A P50 of 0
	// or below is no delay.
	P50, P99 time.Duration
	// SlowShare of all calls, 0 to 1, take Slow instead.
	SlowShare float64
	Slow      time.Duration
	// Seed makes the sequence of delays. The same seed gives the same sequence.
	Seed uint64
}

// Draw returns a function that draws one delay after the other. It is safe for concurrent use.
func (l Latency) Draw() func() time.Duration {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(l.Seed, 0))
	median := math.Log(float64(max(l.P50, 0)))
	sigma := max(0, math.Log(float64(max(l.P50, l.P99, 1)))-median) / z99
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if rnd.Float64() < l.SlowShare {
			return l.Slow
		}
		if l.P50 <= 0 {
			return 0
		}
		return time.Duration(math.Exp(median + sigma*rnd.NormFloat64()))
	}
}
