package tour

import (
	"iter"
	"slices"
	"time"
)

// fleet is all vehicles, and when each of them sends.
type fleet struct {
	vehicles []vehicle
	step     time.Duration // from one vehicle's message to that of the next one
}

// newFleet returns n vehicles of a seed. Each sends about every so often, and they take turns.
func newFleet(seed uint64, n int, every time.Duration) *fleet {
	f := &fleet{step: max(every/time.Duration(n), 1)}
	for i := range n {
		f.vehicles = append(f.vehicles, newVehicle(seed, i))
	}
	return f
}

// every is the time between two messages of a vehicle.
func (f *fleet) every() time.Duration { return f.step * time.Duration(len(f.vehicles)) }

// message is what a vehicle sends: its reading at a time.
type message struct {
	vehicle *vehicle
	time    time.Time
}

// sent returns what the vehicles send after one time up to another, in the order of sending. A vehicle that was offline
// sends what it has recorded as soon as it has a network again, so these messages are late.
func (f *fleet) sent(after, until time.Time) iter.Seq[message] {
	n, step, end := int64(len(f.vehicles)), int64(f.step), until.UnixNano()
	return func(yield func(message) bool) {
		for k := after.UnixNano()/step + 1; k*step <= end; k++ {
			v, t := &f.vehicles[k%n], time.Unix(0, k*step).UTC()
			p := v.at(t)
			if p.in(powerOff, t) || p.in(offline, t) {
				continue
			}
			for _, late := range f.recorded(v, t) {
				if !yield(message{v, late}) {
					return
				}
			}
			if !yield(message{v, t}) {
				return
			}
		}
	}
}

// recorded returns the times of the readings that a vehicle sends late, with that of a time.
func (f *fleet) recorded(v *vehicle, t time.Time) (times []time.Time) {
	before := t.Add(-f.every())
	p := v.at(before)
	for ; p.in(offline, before); before = before.Add(-f.every()) {
		times = append(times, before)
	}
	slices.Reverse(times) // oldest first
	return times
}
