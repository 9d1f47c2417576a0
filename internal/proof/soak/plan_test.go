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

// plan is what a run does. All else follows from it and the seed.
type plan struct {
	seed     uint64
	duration time.Duration

	tenants, noisy, devices int
	rate                    int // points a second
	events                  int // events a second, of each way to add
	readers                 int

	shortAge time.Duration // retention of the dataset that expires
	fine     time.Duration // width of a bucket; five of them are a coarse one

	bufferBytes, journalBytes int64
	cacheEntries              int
}

const (
	slotWidth = 250 * time.Millisecond // a device has at most one point in it
	coarseBy  = 5
)

// The timeouts are short, so that an erasure, which waits for them, ends within a short run.
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

// slots is how many slots of time the account holds: those of the load, and of what comes after until producers have stopped.
func (p plan) slots() int { return int(p.span() / slotWidth) }

// span is the time from slot 0, which begins with a coarse bucket, to well behind the load.
func (p plan) span() time.Duration { return coarseBy*p.fine + p.duration + 30*time.Second }

// buckets is how many fine buckets the account of events holds.
func (p plan) buckets() int { return int(p.span()/p.fine) + 2 }

func (p plan) String() string {
	return fmt.Sprintf("seed %d: %v of %d points/s and 3 x %d events/s, %d tenants (%d noisy), %d devices, %d readers, retention %v, buckets %v, journal %d MiB",
		p.seed, p.duration, p.rate, p.events, p.tenants, p.noisy, p.devices, p.readers, p.shortAge, p.fine, p.journalBytes>>20)
}

// clock is the time of the stores and the engine. It can be put forward, so that nothing has to be waited for at the end.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) forward(d time.Duration) { c.ahead.Add(int64(d)) }
