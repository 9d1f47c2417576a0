package rollup

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// lag is how far behind rollups are, as one pass finds it: for each, since when the oldest closed bucket waits.
type lag struct {
	begin time.Time
	since map[lagOf]int64 // in milliseconds; 0 if none waits
	off   map[string]bool // datasets whose tenants the pass could not all visit
}

type lagOf struct{ dataset, rollup string }

func newLag(begin time.Time) lag {
	return lag{begin: begin, since: map[lagOf]int64{}, off: map[string]bool{}}
}

// earlier returns the earlier of two times; 0 means none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// waits records since when a closed bucket of a rollup waits; 0 records only that the pass visits the rollup.
func (p *pass) waits(dataset, rollup string, since int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := lagOf{dataset, rollup}
	p.lag.since[of] = earlier(p.lag.since[of], since)
}

// unknown records that jobs could not visit all tenants: the lag reported before stays valid.
func (p *pass) unknown(jobs ...job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range jobs {
		p.lag.off[j.Name()] = true
	}
}

// tell reports the lag to the store's telemetry, which uses the machine's clock.
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

// leave ends the reports of this worker: the lag of its rollups is no longer known.
func (w *Worker) leave() {
	for _, j := range w.jobs {
		inside.Of(w.store).Watch().Left(j.Name())
	}
}
