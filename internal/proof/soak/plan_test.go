package soak

import (
	"flag"
	"fmt"
	"sync/atomic"
	"time"
)

var (
	soakFor  = flag.Duration("soak", 10*time.Second, "how long the soak puts its load on")
	soakSeed = flag.Uint64("soak.seed", 0, "what the soak's choices follow from; 0 draws one")
)

// plan describes a run. With the seed it determines everything else.
type plan struct {
	seed     uint64
	duration time.Duration

	tenants, noisy, devices int
	rate                    int // points a second
	events                  int // events a second, for each way to add
	readers                 int

	shortAge time.Duration // retention of the dataset that expires
	fine     time.Duration // width of a bucket; a coarse one is five times as wide

	bufferBytes, journalBytes int64
	cacheEntries              int
}

const (
	slotWidth = 250 * time.Millisecond // a device has at most one point in it
	coarseBy  = 5
)

// Timeouts are short because an erasure waits for them, and must end within a short run.
const (
	requestTimeout = 3 * time.Second
	scanTimeout    = 3 * time.Second
)

func newPlan(d time.Duration, seed uint64, race bool) plan {
	p := plan{
		seed: seed, duration: d,
		tenants: 200, noisy: 5, devices: 5000, rate: 1000, events: 40, readers: 4,
		shortAge: 60 * time.Second, fine: 10 * time.Second,
		bufferBytes: 16 << 20, journalBytes: 64 << 20, cacheEntries: 2000,
	}
	if race {
		p.tenants, p.devices, p.rate, p.events, p.readers = 40, 500, 150, 10, 2
	}
	if d < time.Minute {
		p.shortAge, p.fine = 4*time.Second, 2*time.Second
	}
	return p
}

// slots returns how many time slots are recorded: those of the load, and those until producers have stopped.
func (p plan) slots() int { return int(p.span() / slotWidth) }

// span returns the time from slot 0, at the start of a coarse bucket, until well after the load.
func (p plan) span() time.Duration { return coarseBy*p.fine + p.duration + 30*time.Second }

// buckets returns how many fine buckets of events are recorded.
func (p plan) buckets() int { return int(p.span()/p.fine) + 2 }

func (p plan) String() string {
	return fmt.Sprintf("seed %d: %v of %d points/s and 3 x %d events/s, %d tenants (%d noisy), %d devices, %d readers, retention %v, buckets %v, journal %d MiB",
		p.seed, p.duration, p.rate, p.events, p.tenants, p.noisy, p.devices, p.readers, p.shortAge, p.fine, p.journalBytes>>20)
}

// clock is the clock of the stores and the engine. The test can advance it instead of waiting.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) forward(d time.Duration) { c.ahead.Add(int64(d)) }
