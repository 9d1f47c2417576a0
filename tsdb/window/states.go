package window

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxStates is how many different states a measure may have in one run of a sequence. One more ends the sequence with
// tsdb.ErrInvalid.
const maxStates = 1000

// States says how long each state of a measure lasted in a bucket, in the part of it that the interval covers. A state
// lasts until the next point that has one, also beyond the bucket of its own point, and the last one to the end of the
// interval; but no longer than Measure.MaxGap. So end an interval now, and not in the future.
//
// Its JSON is
// {"times":[{"state":"on","time_s":60,"entered":1}],"transitions":1,"unknown_s":0,"first":"on","last":"on"}.
type States struct {
	// Times are the states of the bucket: texts in their order, whole numbers by value.
	Times []StateTime
	// Transitions is how often the state changed, from one point to the next. The change from the last point before the
	// bucket to its first one counts here, so the hours of a day add up to the day.
	Transitions int64
	// Unknown is how long no state was known: before the first point, and once a state has lasted for MaxGap.
	Unknown Span
	// First and Last are the states of the oldest and the newest point of the bucket, "" without one.
	First, Last string

	first, last stateID
}

// StateTime is one state of a bucket.
type StateTime struct {
	// State is the text, or the digits of the number.
	State string
	// Time is how long the state lasted.
	Time Span
	// Entered is how often another state changed into it.
	Entered int64

	units int64
}

// Time returns how long a state lasted, 0 if it did not.
func (s *States) Time(state string) Span {
	if s != nil {
		for i := range s.Times {
			if s.Times[i].State == state {
				return s.Times[i].Time
			}
		}
	}
	return Span{}
}

// known returns how long some state was known.
func (s *States) known() (sum Span) {
	if s != nil {
		for i := range s.Times {
			sum = sum.add(s.Times[i].Time)
		}
	}
	return sum
}

// MarshalJSON implements json.Marshaler. Times are in seconds.
func (s *States) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("null"), nil
	}
	type stateTime struct {
		State   string  `json:"state"`
		Time    float64 `json:"time_s"`
		Entered int64   `json:"entered"`
	}
	times := make([]stateTime, len(s.Times))
	for i, t := range s.Times {
		times[i] = stateTime{t.State, t.Time.Seconds(), t.Entered}
	}
	return json.Marshal(struct {
		Times       []stateTime `json:"times"`
		Transitions int64       `json:"transitions"`
		Unknown     float64     `json:"unknown_s"`
		First       string      `json:"first,omitempty"`
		Last        string      `json:"last,omitempty"`
	}{times, s.Transitions, s.Unknown.Seconds(), s.First, s.Last})
}

// stateID identifies a state. While a bucket is open, a number has no name.
type stateID struct {
	units int64
	name  string
}

func (r *reading) state() stateID { return stateID{int64(r.units.lo), r.text} }

// at returns the entry of a state, and adds it if it is missing.
func (s *States) at(id stateID) *StateTime {
	i, found := slices.BinarySearchFunc(s.Times, id, func(t StateTime, id stateID) int {
		return cmp.Or(cmp.Compare(t.units, id.units), cmp.Compare(t.State, id.name))
	})
	if !found {
		s.Times = slices.Insert(s.Times, i, StateTime{State: id.name, units: id.units})
	}
	return &s.Times[i]
}

// spend adds time in a state.
func (s *States) spend(id stateID, d Span) {
	if d != (Span{}) {
		t := s.at(id)
		t.Time = t.Time.add(d)
	}
}

// enter counts the change from the state of one point to that of the next.
func (s *States) enter(older, newer stateID) {
	if older != newer {
		s.Transitions++
		s.at(newer).Entered++
	}
}

// between sets the first and the last state, and names the states if they are numbers: decimals is below 0 if they are
// texts.
func (s *States) between(first, last stateID, decimals int) {
	if decimals >= 0 {
		for i := range s.Times {
			s.Times[i].State = newDecimal(s.Times[i].units, decimals).String()
		}
		first.name, last.name = newDecimal(first.units, decimals).String(), newDecimal(last.units, decimals).String()
	}
	s.first, s.last = first, last
	s.First, s.Last = first.name, last.name
}

// last adds the time for which the newest state or number of a summary lasted in a bucket, until the next point. It is
// zero if the bucket has no newer point.
func (r *row) last(measure int, b *Bucket, older *Summary, until time.Time) {
	rule := &r.rules[measure]
	if !rule.lasts() {
		return
	}
	from, to := r.clip(b)
	from, to = clip(from, rule.until(older.LastTime, to), older.LastTime, until)
	if s := &b.Values[measure]; rule.Hold {
		s.integrate(older.Last*instant.Seconds(from, to), from, to)
	} else {
		s.States.spend(older.States.last, spanOf(from, to))
	}
}

// lastBetween adds the time for which a state or a number lasted after its own bucket, up to the next number of the
// measure. Of two adjacent buckets with numbers, a was pushed before b. It need not exist: then the newest come first,
// and b has the last state.
func (r *row) lastBetween(measure int, a, b *anchor) {
	if r.oldestFirst {
		if n := b.number - r.first; a.found && n < len(r.held) { // those without numbers have it already
			r.last(measure, &r.held[n], &a.summary, b.summary.FirstTime)
		}
		return
	}
	var until time.Time
	if a.found {
		until = a.summary.FirstTime
	}
	for n := max(a.number, r.first); n < b.number; n++ {
		r.last(measure, &r.held[n-r.first], &b.summary, until)
	}
}

func tooManyStates(measure string) error {
	return invalid.New(tsdb.ErrInvalid, "states of measure "+measure, "more than "+strconv.Itoa(maxStates), "up to "+strconv.Itoa(maxStates)+" different ones")
}
