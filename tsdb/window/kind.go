package window

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Kind says what the numbers of a measure mean, and so which aggregates of them make sense. A Kind marshals as text:
// "gauge", "counter", "state".
type Kind uint8

const (
	// Gauge is the default: a number that rises and falls, such as a temperature, a voltage or a load in kW.
	Gauge Kind = iota
	// Counter is a number that only grows, such as the kWh of a meter. A number that is less than the one before it
	// means that the counter was reset: it has counted from zero since. Measure.MaxDip is how much less it may be
	// without a reset. A negative number counts as none.
	Counter
	// State is a text or a number that names a state, such as "charging", or 0 for off and 1 for on. It cannot be added
	// or averaged. It lasts until the next one.
	State
)

var kindNames = [...]string{Gauge: "gauge", Counter: "counter", State: "state"}

// String returns the name of k.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return "Kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kindNames[k]
}

// MarshalText implements encoding.TextMarshaler. It fails with tsdb.ErrInvalid for a value that is not one of the
// constants.
func (k Kind) MarshalText() ([]byte, error) {
	if int(k) >= len(kindNames) {
		return nil, k.invalid()
	}
	return []byte(kindNames[k]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error matches tsdb.ErrInvalid.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return invalid.New(tsdb.ErrInvalid, "kind", invalid.Quote(string(text)), "gauge, counter or state")
}

func (k Kind) invalid() error {
	return invalid.New(tsdb.ErrInvalid, "Kind", k.String(), "Gauge, Counter or State")
}

// Aggregates says which aggregates of a measure to compute, or, in a rollup, to keep: one of the constants, or several
// joined by |. Each is a few fields of [Summary]. The kind of the measure decides which are allowed, and which ones
// zero means:
//
//	Gauge    Count, Sum, Min, Max, Ends, StdDev, Delta, Integral, Quantiles; zero is Basic|Ends, in a rollup Basic
//	Counter  Count, Min, Max, Ends, Increase; zero is Count|Ends|Increase
//	State    Count, Ends, Durations; zero is Count|Ends, and with Measure.Text also Durations
type Aggregates uint16

const (
	// Count is how many points have a number.
	Count Aggregates = 1 << iota
	// Sum is the sum. With Count, it gives the mean.
	Sum
	// Min is the smallest number.
	Min
	// Max is the largest number.
	Max
	// Ends are the oldest and the newest number with their times: First, FirstTime, Last, LastTime.
	Ends
	// StdDev is the standard deviation.
	StdDev
	// Delta is how much a gauge changed: Delta and Since.
	Delta
	// Increase is how much a counter counted: Increase, Rate, Resets and Since.
	Increase
	// Integral weighs the numbers of a gauge by how long each was valid: Integral, TimeMean and Covered.
	Integral
	// Quantiles are percentiles and histograms, with an error of at most 0.8 percent.
	Quantiles
	// Durations are how long each state lasted: States.
	Durations

	// Mean is what the mean needs.
	Mean = Count | Sum
	// Basic is Count, Sum, Min and Max.
	Basic = Count | Sum | Min | Max
)

var aggregateNames = [...]string{"count", "sum", "min", "max", "ends", "stddev", "delta", "increase", "integral", "quantiles", "durations"}

const everyAggregate = Aggregates(1<<len(aggregateNames)) - 1

// names returns the names of the aggregates in the order of the constants.
func (a Aggregates) names() (names []string) {
	for i, name := range aggregateNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names of the aggregates in the order of the constants, as rollups are stored with them: count+sum.
func (a Aggregates) String() string { return strings.Join(a.names(), "+") }

// any reports whether a has one of the aggregates of b.
func (a Aggregates) any(b Aggregates) bool { return a&b != 0 }

// Resolve returns a, or the default of the kind if a is zero, with Ends where Delta, Increase, Integral or Durations
// need it, Mean where StdDev does, and Count, Min and Max where Quantiles do. The error matches tsdb.ErrInvalid and
// says why the kind does not allow one of them.
func (k Kind) Resolve(a Aggregates) (Aggregates, error) {
	const field = "Aggregates"
	var allowed Aggregates
	why := ""
	switch k {
	case Gauge:
		if a == 0 {
			return Basic | Ends, nil
		}
		allowed = everyAggregate &^ (Increase | Durations)
		why = "a gauge falls without a reset, so it has no increase: declare Kind: Counter, or use Delta"
	case Counter:
		if a == 0 {
			return Count | Ends | Increase, nil
		}
		allowed = Count | Min | Max | Ends | Increase
		why = "the readings of a counter are totals since a reset, so only their Increase can be added up or averaged"
	case State:
		if a == 0 {
			return Count | Ends, nil
		}
		allowed = Count | Ends | Durations
		why = "the number of a state is a name and not an amount"
	default:
		return 0, k.invalid()
	}
	if bad := a &^ everyAggregate; bad != 0 {
		return 0, invalid.New(tsdb.ErrInvalid, field, strconv.Itoa(int(a)), "constants of package window, joined by |")
	}
	if bad := a &^ allowed; bad != 0 {
		if bad == Durations {
			why = "only a state lasts until the next one: declare Kind: State"
		}
		return 0, invalid.New(tsdb.ErrInvalid, field, bad.String()+" of a "+k.String(), fmt.Sprintf("some of %s; %s", allowed, why))
	}
	if a.any(joined) {
		a |= Ends
	}
	if a.any(StdDev) {
		a |= Mean
	}
	if a.any(Quantiles) {
		a |= Count | Min | Max
	}
	return a, nil
}

// joined are the aggregates of a bucket that need numbers outside of it. They need Ends.
const joined = Delta | Increase | Integral | Durations

// fits refuses a way to fill gaps that makes no sense for a measure.
func (r *rule) fits(measure int, opts Options) error {
	if r.Kind != State || opts.Gaps != Linear {
		return nil
	}
	return invalid.New(tsdb.ErrInvalid, "Gaps", opts.Gaps.String(), "LeaveOut, Null or Previous: there is nothing between two states, and measure "+strconv.Itoa(measure)+" is a state")
}

// checkLine refuses options of a measure that none of its aggregates uses.
func (m *Measure[T]) checkLine(a Aggregates) error {
	switch {
	case m.MaxGap < 0:
		return invalid.New(tsdb.ErrInvalid, "MaxGap", m.MaxGap.String(), "0 for none, or more")
	case !(m.MaxDip >= 0 && isFinite(m.MaxDip)):
		return invalid.New(tsdb.ErrInvalid, "MaxDip", strconv.FormatFloat(m.MaxDip, 'g', -1, 64), "0 for none, or more")
	case m.MaxDip != 0 && !a.any(Increase):
		return invalid.New(tsdb.ErrInvalid, "MaxDip", strconv.FormatFloat(m.MaxDip, 'g', -1, 64), "0 without Increase among the Aggregates: nothing else uses it")
	case m.Linear && !a.any(Integral):
		return invalid.New(tsdb.ErrInvalid, "Linear", "true", "false without Integral among the Aggregates: nothing else uses it")
	case m.Hold && !a.any(Integral):
		return invalid.New(tsdb.ErrInvalid, "Hold", "true", "false without Integral among the Aggregates: nothing else uses it")
	case m.Hold && m.Linear:
		return invalid.New(tsdb.ErrInvalid, "Hold and Linear", "true and true", "one of them: a number holds its value until the next one, or changes linearly")
	case m.MaxGap != 0 && !a.any(Integral|Durations):
		return invalid.New(tsdb.ErrInvalid, "MaxGap", m.MaxGap.String(), "0 without Integral or Durations among the Aggregates: nothing else uses it")
	}
	return nil
}
