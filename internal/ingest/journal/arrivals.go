package journal

import "time"

// arrivals say when records came, so that the age of the oldest is known to a second, or to 1/256 of itself where that is
// more. So they stay few, however long nothing is delivered.
type arrivals []arrival

// arrival says that records from a number on came at a time or later.
type arrival struct {
	seq uint64
	at  time.Time
}

// add notes that the record with a number came now. Those before oldest are done.
func (a *arrivals) add(seq uint64, now time.Time, oldest uint64) {
	a.forget(oldest)
	if n := len(*a); n > 0 {
		first, last := (*a)[0], &(*a)[n-1]
		if last.seq == seq { // of the opening of a journal that was empty
			last.at = now
			return
		}
		if now.Sub(last.at) < max(time.Second, now.Sub(first.at)/256) {
			return
		}
	}
	*a = append(*a, arrival{seq, now})
}

// forget forgets what says nothing of a record and later ones.
func (a *arrivals) forget(seq uint64) {
	for len(*a) > 1 && (*a)[1].seq <= seq {
		*a = (*a)[1:]
	}
}

// age returns how old the record with a number is, at most, where all before it are done.
func (a *arrivals) age(seq uint64, now time.Time) time.Duration {
	if a.forget(seq); len(*a) == 0 || (*a)[0].seq > seq {
		return 0
	}
	return now.Sub((*a)[0].at)
}
