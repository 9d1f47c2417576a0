package journal

import "time"

// arrivals record when records arrived. They give the age of the oldest record to within a second, or 1/256 of the age
// if that is more. So their number stays small, however long nothing is delivered.
type arrivals []arrival

// arrival says that the records from seq on arrived at this time or later.
type arrival struct {
	seq uint64
	at  time.Time
}

// add records that the record with a number arrived now. Records before oldest are done.
func (a *arrivals) add(seq uint64, now time.Time, oldest uint64) {
	a.forget(oldest)
	if n := len(*a); n > 0 {
		first, last := (*a)[0], &(*a)[n-1]
		if last.seq == seq { // recorded when an empty journal was opened
			last.at = now
			return
		}
		if now.Sub(last.at) < max(time.Second, now.Sub(first.at)/256) {
			return
		}
	}
	*a = append(*a, arrival{seq, now})
}

// forget drops the arrivals that are not needed for seq and later records.
func (a *arrivals) forget(seq uint64) {
	for len(*a) > 1 && (*a)[1].seq <= seq {
		*a = (*a)[1:]
	}
}

// age returns the greatest possible age of the record with a number, if all records before it are done.
func (a *arrivals) age(seq uint64, now time.Time) time.Duration {
	if a.forget(seq); len(*a) == 0 || (*a)[0].seq > seq {
		return 0
	}
	return now.Sub((*a)[0].at)
}
