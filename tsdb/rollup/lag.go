package rollup

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// lag is how far rollups are behind, as one pass finds it: since when the first closed bucket waits that is not computed.
type lag struct {
	begin time.Time
	since map[lagOf]int64 // in milliseconds; 0 where none waits
	off   map[string]bool // datasets of which not all tenants could be looked at
}

type lagOf struct{ dataset, rollup string }

func newLag(begin time.Time) lag {
	return lag{begin: begin, since: map[lagOf]int64{}, off: map[string]bool{}}
}

// earlier returns the earlier of two times, of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// waits notes since when a closed bucket of a rollup waits; 0 that the rollup is looked at.
func (p *pass) waits(dataset, rollup string, since int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := lagOf{dataset, rollup}
	p.lag.since[of] = earlier(p.lag.since[of], since)
}

// unknown notes that jobs could not look at all tenants: how far they are behind stays as it was known before.
func (p *pass) unknown(jobs ...Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range jobs {
		p.lag.off[j.Name()] = true
	}
}

// tell tells the store's telemetry, whose time is that of the machine.
func (l *lag) tell(watch *telemetry.Probe, now time.Time) {
	for of, ms := range l.since {
		if l.off[of.dataset] {
			continue
		}
		upTo := l.begin
		if ms > 0 {
			upTo = time.UnixMilli(ms)
		}
		watch.Worked(of.dataset, of.rollup, time.Now().Add(-now.Sub(upTo)))
	}
}

// leave tells that the worker has ended: how far its rollups are behind is not known any more.
func (w *Worker) leave() {
	for _, j := range w.jobs {
		inside.Watch(w.store).Left(j.Name())
	}
}
