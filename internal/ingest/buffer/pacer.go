package buffer

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
)

const (
	// A limit ends when the service has given no advice for silentPeriods of its periods, and at least for
	// leastSilence: it gives advice only while it is busy. leastSilence is longer than a pause between two batches, and
	// so there are responses in that time.
	silentPeriods = 3
	leastSilence  = 30 * time.Second
	// leastRate and longestPace keep a writer going, whatever the service says: it may send leastRate bytes a second,
	// and a batch each longestPace, however large.
	leastRate   = 16 << 10
	longestPace = 10 * time.Second
	mostRate    = 1 << 40
	// paceCredit is how far behind its rate the buffer may fall and catch up, so that late timers do not lower the
	// rate.
	paceCredit = 100 * time.Millisecond
)

// pacer limits the rate of batches while the service asks for less. The zero pacer has no limit.
//
// It counts bytes of items in memory, because they grow with the points and with their payloads, and both are work for
// the service. Requests alone are not comparable over time, because a batch has one point or thousands.
type pacer struct {
	rate  float64   // bytes a second; 0 means no limit
	again time.Time // advice counts again then, a period after the rate was set
	ends  time.Time // the limit ends then, unless the service gives advice before
	next  time.Time // the next batch goes then
	sent  load
}

// launched takes a batch into account that is about to be sent.
func (p *pacer) launched(now time.Time, bytes int) {
	p.sent.add(now, bytes)
	if p.rate > 0 {
		pause := time.Duration(float64(bytes) / p.rate * float64(time.Second))
		p.next = later(p.next, now.Add(-paceCredit)).Add(min(pause, longestPace))
	}
}

// until returns when the next batch may go. A time in the past or zero means now.
func (p *pacer) until() time.Time {
	if p.rate > 0 && p.ends.Before(p.next) {
		return p.ends
	}
	return p.next
}

// rateAt returns the limit in bytes a second; 0 means none.
func (p *pacer) rateAt(now time.Time) int64 {
	if now.Before(p.ends) {
		return int64(p.rate)
	}
	return 0
}

// expire ends a limit about which the service has been silent.
func (p *pacer) expire(now time.Time) {
	if p.rate > 0 && !now.Before(p.ends) {
		p.rate, p.next = 0, time.Time{}
	}
}

// advise follows advice of the service. A factor below 1 lowers the rate, or sets a limit if there is none. One above 1
// raises a limit; it sets none, because a writer with little to do may have more to do at any time.
//
// The limit is at most the factor times the load: a writer that does not use its limit must send less, too, if the
// service asks for it.
func (p *pacer) advise(now time.Time, limit bt.RateLimit) {
	p.expire(now)
	from := p.rate
	if limit.Factor < 1 {
		if busiest := float64(p.sent.busiest(now)); from == 0 || busiest > 0 && busiest < from {
			from = busiest
		}
	}
	if from == 0 {
		return // there is no limit to raise, or the load is not known yet
	}
	p.ends = now.Add(max(silentPeriods*limit.Period, leastSilence))
	if p.rate > 0 && now.Before(p.again) {
		return
	}
	p.rate = min(max(from*limit.Factor, leastRate), mostRate)
	p.again = now.Add(limit.Period)
}

// load counts the bytes of the last loadSeconds seconds, and of the current one.
type load struct {
	begin   time.Time // of the first batch, or of the first after a pause of loadSeconds
	second  int       // the current second, since begin
	seconds [loadSeconds + 1]int
}

const loadSeconds = 10

func (l *load) add(now time.Time, bytes int) {
	if l.advance(now); l.seconds == [loadSeconds + 1]int{} {
		l.begin, l.second = now, 0
	}
	l.seconds[l.second%len(l.seconds)] += bytes
}

// busiest returns the bytes of the busiest whole second; 0 means that there is none. The average of a writer that has
// just begun, or that sends in bursts, would be a limit far below what the service was able to take.
func (l *load) busiest(now time.Time) int {
	l.advance(now)
	most := 0
	for i, n := range l.seconds {
		if i != l.second%len(l.seconds) {
			most = max(most, n)
		}
	}
	return most
}

// advance goes to the current second and clears those that are too long ago.
func (l *load) advance(now time.Time) {
	second := int(now.Sub(l.begin) / time.Second)
	for n := min(second-l.second, len(l.seconds)); n > 0; n-- {
		l.seconds[(second-n+1)%len(l.seconds)] = 0
	}
	l.second = max(l.second, second)
}
