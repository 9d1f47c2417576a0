package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The column families of a rollup in a retention class are named by the class and these endings; docs/format.md
// describes them.
const (
	SumEnding     = ".s"
	MinEnding     = ".n"
	MaxEnding     = ".x"
	ControlEnding = ".c"
)

// Rollup is a rollup's description in the catalogue.
type Rollup struct {
	Name string `json:"name"`
	// Kind is derived, stream, message or once.
	Kind string `json:"kind"`
	// Every and Zone define the grid of buckets. Every is in the form of package window, Zone in that of
	// time.LoadLocation.
	Every string `json:"every"`
	Zone  string `json:"zone"`
	// From is the finer rollup from which a derived one is computed; empty means from the points.
	From string `json:"from,omitempty"`
	// Span is the time range of a row, and Step that of a mark, in milliseconds.
	Span int64 `json:"span_ms"`
	Step int64 `json:"step_ms,omitempty"`
	// Late is how long a bucket stays open after its end, in milliseconds.
	Late int64 `json:"late_ms"`
	// Remember is how long a row remembers messages, in milliseconds, and MaxMessages about how many it remembers.
	Remember    int64           `json:"remember_ms,omitempty"`
	MaxMessages int             `json:"max_messages,omitempty"`
	Class       Class           `json:"class"`
	Measures    []RollupMeasure `json:"measures,omitempty"`
}

// RollupMeasure is a measure's description in the catalogue. Numbers are stored as whole multiples of 10^-Decimals.
type RollupMeasure struct {
	Name       string   `json:"name"`
	Decimals   int      `json:"decimals"`
	Max        string   `json:"max"`        // the greatest magnitude, as a decimal number
	Aggregates []string `json:"aggregates"` // names of window.Aggregates
	// Kind is the kind, and the field of the payload that has the number: see KindOf. It is empty for a gauge that is a
	// function.
	Kind string `json:"kind,omitempty"`
	// Linear and MaxGap, in milliseconds, are the options of the integral.
	Linear bool  `json:"linear,omitempty"`
	MaxGap int64 `json:"max_gap_ms,omitempty"`
	// Added says that stored buckets may be older than the measure, or than some of its aggregates.
	Added bool `json:"added,omitempty"`
}

// Gauge is the kind of a measure that has no other.
const Gauge = "gauge"

const ofField = " of "

// KindOf returns RollupMeasure.Kind for a measure that is a field, or a function of the program if field is empty:
// "counter of kwh". Both are in one member so that a program that does not know fields sees an unknown kind. It then
// refuses to declare the measure, and leaves the rollup out where it reads it by the catalogue.
func KindOf(kind, field string) string {
	switch {
	case field != "":
		return kind + ofField + field
	case kind == Gauge:
		return ""
	}
	return kind
}

// KindAndField returns the kind of the measure, and its field; empty if it is a function.
func (m RollupMeasure) KindAndField() (kind, field string) {
	kind, field, _ = strings.Cut(m.Kind, ofField)
	return cmp.Or(kind, Gauge), field
}

// Payload is the field of a measure that is the payload itself.
const Payload = "."

// PayloadName returns the name by which payloads have the field of a measure.
func PayloadName(field string) string {
	if field == Payload {
		return ""
	}
	return field
}

// gainsField reports whether m is the stored s, but for a field in place of a function.
func (m RollupMeasure) gainsField(s RollupMeasure) bool {
	kind, field := m.KindAndField()
	had, before := s.KindAndField()
	return kind == had && field != "" && before == ""
}

// The kinds of rollups.
const (
	Derived   = "derived"
	ByStream  = "stream"
	ByMessage = "message"
	Once      = "once"
)

// SameMeasures reports whether the two have the same measures.
func (r *Rollup) SameMeasures(o *Rollup) bool {
	return slices.EqualFunc(r.Measures, o.Measures, RollupMeasure.equal)
}

func (m RollupMeasure) equal(o RollupMeasure) bool {
	return m.Kind == o.Kind && m.String() == o.String() // a field may contain anything
}

// String returns the measure's text for messages.
func (m RollupMeasure) String() string {
	text := fmt.Sprintf("%s (%s, %d decimals, up to %s", m.Name, strings.Join(m.Aggregates, "+"), m.Decimals, m.Max)
	if m.Kind != "" {
		text += ", a " + m.Kind
	}
	if m.Linear {
		text += ", linear"
	}
	if m.MaxGap != 0 {
		text += fmt.Sprintf(", gaps up to %d ms", m.MaxGap)
	}
	if m.Added {
		text += ", added"
	}
	return text + ")"
}

// grownFrom reports whether the stored rollup o becomes r by adding measures, and aggregates of measures, that r
// declares as added, and by fields of measures that were functions. It returns these measures.
func (r *Rollup) grownFrom(o *Rollup) (added []string, ok bool) {
	if r.Kind != Derived {
		return nil, false
	}
	for _, s := range o.Measures {
		if !slices.ContainsFunc(r.Measures, func(m RollupMeasure) bool { return m.Name == s.Name }) {
			return nil, false
		}
	}
	for _, m := range r.Measures {
		if i := slices.IndexFunc(o.Measures, func(s RollupMeasure) bool { return s.Name == m.Name }); i >= 0 {
			s := o.Measures[i]
			gained := m.gainsField(s)
			if gained {
				s.Kind = m.Kind
			}
			switch {
			case m.equal(s) && !gained:
				continue
			case !m.equal(s) && (!m.Added || !m.gains(s)):
				return nil, false
			}
		} else if !m.Added {
			return nil, false
		}
		added = append(added, m.String())
	}
	return added, len(added) > 0
}

// gains reports whether m is the stored s with more aggregates, of which each bucket that has numbers stores a cell: so
// a bucket without the cell is known to be older.
func (m RollupMeasure) gains(s RollupMeasure) bool {
	had := s.Aggregates
	if len(m.Aggregates) == len(had) || slices.ContainsFunc(had, func(name string) bool { return !slices.Contains(m.Aggregates, name) }) {
		return false
	}
	for _, name := range m.Aggregates {
		if !slices.Contains(had, name) && (name == "increase" || name == "integral") {
			return false
		}
	}
	m.Aggregates, m.Added = had, s.Added
	return m.equal(s) && len(had) > 1 // a count alone is stored in another way
}

// differences lists how the declared r differs from the stored o. No part of a rollup can change, but it can grow.
func (r *Rollup) differences(dataset string, o *Rollup) (diffs []string) {
	differ := func(what, declared, stored string) {
		if declared != stored {
			diffs = append(diffs, fmt.Sprintf("dataset %s: %s of rollup %s declared as %s, stored as %s", dataset, what, r.Name, declared, stored))
		}
	}
	millis := func(ms int64) string { return strconv.FormatInt(ms, 10) + " ms" }
	differ("kind", r.Kind, o.Kind)
	differ("width", r.Every, o.Every)
	differ("zone", r.Zone, o.Zone)
	differ("source", cmp.Or(r.From, "the points"), cmp.Or(o.From, "the points"))
	differ("span of a row", millis(r.Span), millis(o.Span))
	differ("step of marks", millis(r.Step), millis(o.Step))
	differ("lateness", millis(r.Late), millis(o.Late))
	differ("memory of messages", millis(r.Remember), millis(o.Remember))
	differ("number of messages in a row", strconv.Itoa(r.MaxMessages), strconv.Itoa(o.MaxMessages))
	differ("retention class", r.Class.Name, o.Class.Name)
	differ("policy", r.Class.Policy, o.Class.Policy)
	if _, grown := r.grownFrom(o); !grown {
		differ("measures", measuresString(r.Measures), measuresString(o.Measures))
	}
	return diffs
}

func measuresString(measures []RollupMeasure) string {
	out := make([]string, len(measures))
	for i, m := range measures {
		out[i] = m.String()
	}
	return strings.Join(out, ", ")
}

// rollups lists the differences of rollups that both have.
func (d *Dataset) rollups(o *Dataset) (diffs []string) {
	for i := range d.Rollups {
		for j := range o.Rollups {
			if d.Rollups[i].Name == o.Rollups[j].Name {
				diffs = append(diffs, d.Rollups[i].differences(d.Name, &o.Rollups[j])...)
			}
		}
	}
	return diffs
}

// additions lists the measures that d adds to rollups of o.
func (d *Dataset) additions(o *Dataset) (diffs []string) {
	for i := range d.Rollups {
		for j := range o.Rollups {
			if r, s := &d.Rollups[i], &o.Rollups[j]; r.Name == s.Name {
				added, _ := r.grownFrom(s)
				for _, measure := range added {
					diffs = append(diffs, fmt.Sprintf("dataset %s: measure %s of rollup %s declared, but not stored (Ensure adds it)", d.Name, measure, r.Name))
				}
			}
		}
	}
	return diffs
}

// ShortName reports whether a rollup or a measure may have a name: 1 to 16 bytes of a-z 0-9 _.
func ShortName(name string) bool {
	if name == "" || len(name) > 16 {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}
