package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// z99 is the standard normal distribution's 99th percentile.
const z99 = 2.3263478740408408

// latency is a distribution of delays with a tail, as in networks and servers: log-normal by its median and 99th
// percentile, plus a small share of very slow calls. draw returns a function for tsdbtest.DelayBy.
type latency struct {
	// P50 and P99 are the median and the 99th percentile. If P99 is below P50, all calls take P50. If P50 is 0 or
	// below, there is no delay.
	P50, P99 time.Duration
	// SlowShare is the share of calls, 0 to 1, that take Slow instead.
	SlowShare float64
	Slow      time.Duration
	// Seed determines the sequence of delays.
	Seed uint64
}

// draw returns a function that returns the next delay. It is safe for concurrent use.
func (l latency) draw() func() time.Duration {
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

func TestLatencyHasTheQuantilesItNames(t *testing.T) {
	l := latency{P50: 3 * time.Millisecond, P99: 15 * time.Millisecond, Seed: 7}
	draw, again := l.draw(), l.draw()
	var d []time.Duration
	for range 100_000 {
		v := draw()
		if v != again() {
			t.Fatal("one seed returns two sequences")
		}
		d = append(d, v)
	}
	slices.Sort(d)
	for _, q := range []struct {
		at   float64
		want time.Duration
	}{{0.5, l.P50}, {0.99, l.P99}} {
		if got := d[int(q.at*float64(len(d)))]; got < q.want*95/100 || got > q.want*105/100 {
			t.Errorf("the %v quantile is %v, want about %v", q.at, got, q.want)
		}
	}
}

func TestLatencyOfNothing(t *testing.T) {
	for _, l := range []latency{{}, {P50: -1}, {P99: time.Second}} {
		if d := l.draw()(); d != 0 {
			t.Errorf("%+v draws %v", l, d)
		}
	}
	if d := (latency{P50: time.Second}).draw()(); d.Round(time.Millisecond) != time.Second {
		t.Errorf("without a tail a median of 1s draws %v", d)
	}
}
