package tsdbtest

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// z99 is the standard normal distribution's 99th percentile.
const z99 = 2.3263478740408408

// Latency is a distribution of delays with a tail, as in networks and servers: log-normal by its median and 99th
// percentile, plus a small share of very slow calls. Draw returns a function for DelayBy.
type Latency struct {
	// P50 and P99 are the median and the 99th percentile. If P99 is below P50, all calls take P50. If P50 is 0 or
	// below, there is no delay.
	P50, P99 time.Duration
	// SlowShare is the share of calls, 0 to 1, that take Slow instead.
	SlowShare float64
	Slow      time.Duration
	// Seed determines the sequence of delays.
	Seed uint64
}

// Draw returns a function that returns the next delay. It is safe for concurrent use.
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
