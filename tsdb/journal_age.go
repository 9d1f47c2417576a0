package tsdb

import (
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

const (
	// ageMarks bounds how many moments are kept, ageStep is how far they are apart as long as that is enough for them.
	ageMarks = 512
	ageStep  = time.Second
)

// ages remember about when the records of a journal came, so that the age of the oldest is known: a few moments, as most
// records come right behind others. The zero value is ready.
type ages struct {
	marks []ageMark // by number
	step  time.Duration
}

// ageMark says that records from a number on came at a time or later.
type ageMark struct {
	seq uint64
	at  time.Time
}

// note notes that the record with a number came now.
func (a *ages) note(seq uint64, now time.Time) {
	if n := len(a.marks); n > 0 {
		switch last := &a.marks[n-1]; {
		case last.seq == seq: // of the opening of a journal that was empty
			last.at = now
			return
		case now.Sub(last.at) < max(a.step, ageStep):
			return
		}
	}
	if len(a.marks) == ageMarks {
		for i := range ageMarks / 2 {
			a.marks[i] = a.marks[2*i]
		}
		a.marks = a.marks[:ageMarks/2]
		a.step = 2 * max(a.step, ageStep)
	}
	a.marks = append(a.marks, ageMark{seq, now})
}

// of returns how old the record with a number is, at most, where all before it are done.
func (a *ages) of(seq uint64, now time.Time) time.Duration {
	i, exact := slices.BinarySearchFunc(a.marks, seq, func(m ageMark, seq uint64) int {
		switch {
		case m.seq < seq:
			return -1
		case m.seq > seq:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	if i < 0 {
		return 0
	}
	a.marks = a.marks[i:]
	if len(a.marks) == 1 {
		a.step = 0
	}
	return now.Sub(a.marks[0].at)
}

// age returns how old the oldest record is that is not delivered; 0 where there is none.
func (j *journal) age(st spool.Stats) time.Duration {
	if st.Records == 0 {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ages.of(st.First, time.Now())
}
