package keyadvice

import "math/bits"

// A snowflake has 42 bits of milliseconds since its own epoch, ten bits of the machine that made it, and twelve bits
// of a sequence. Twitter's epoch is in 2010, Discord's in 2015. Any number of that size has a time, so the other bits
// decide.
const (
	snowflakeEpoch = 1_288_834_974_657 // Twitter's, in milliseconds since 1970; the earliest that is looked for
	timeShift      = 22
	sequenceBits   = 12
	machines       = 1 << (timeShift - sequenceBits)
	// lowSequence is more than most sequences reach, because they restart each millisecond; 1 in 64 random sequences
	// is below it.
	lowSequence = 64
	// fewestDigits is the smallest number of 17 digits: such ids exist since the end of 2010.
	fewestDigits = 10_000_000_000_000_000
)

// snowflakes reports whether the numbers are snowflakes: made at many times, by a few machines, or mostly with low
// sequences.
func (n numeric) snowflakes() bool {
	if n.prefix != "" || n.n[0] < fewestDigits || n.n[len(n.n)-1]>>timeShift+snowflakeEpoch > latest*1000 || n.cells() {
		return false
	}
	var made [machines]bool
	makers, times, low, round := 0, 0, 0, true
	for i, id := range n.n {
		machine := id >> sequenceBits % machines
		if !made[machine] {
			made[machine] = true
			makers++
		}
		if i == 0 || id>>timeShift != n.n[i-1]>>timeShift {
			times++
		}
		if id%(1<<sequenceBits) < lowSequence {
			low++
		}
		round = round && id%1000 == 0
	}
	if round || 2*times < len(n.n) { // times in a finer unit, or numbers with zeros at their end; or serial numbers of one kind
		return false
	}
	return 2*makers <= min(len(n.n), machines) || float64(low) >= hashes*float64(len(n.n))
}

// cells reports whether the numbers are cells of an S2 map of one level: each has its last bit in the same, even
// position, and the bits before it differ.
func (n numeric) cells() bool {
	place := bits.TrailingZeros64(n.n[0])
	differ := uint64(0)
	for _, id := range n.n {
		if bits.TrailingZeros64(id) != place {
			return false
		}
		differ |= id ^ n.n[0]
	}
	return place%2 == 0 && differ>>(place+1)&7 == 7
}
