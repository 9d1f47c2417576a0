package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

// shown is the number of refused lines that a report lists; it counts all.
const shown = 10

// report counts lines by their outcome: each line that is not blank is stored, refused or undelivered. For OTLP, a line
// is a data point, and for JSON a message; a blank one has no value.
type report struct {
	lines, blank int
	sent         int   // points given to the store
	bytes        int64 // of their payloads
	stored       int   // lines
	points       int   // points of the stored lines
	merged       int   // stored lines that are part of another line's point
	unchanged    int   // points of the stored lines that are left out, because they say nothing new
	journaled    int   // stored lines that are in the journal, to be delivered
	replaced     int   // merged lines that gave a field of an earlier line another value
	refused      int
	reasons      map[string]int // of the refused lines, by reason
	examples     []refusal
	undelivered  int // possibly stored, and should be sent again
}

// refusal is one of the refused lines.
type refusal struct {
	number int    // its position in the input
	reason string // one of a few
	where  string // the same, in words
	err    error
}

// refuse counts a line that is not stored.
func (r *report) refuse(number int, where fmt.Stringer, err error) {
	reason := "it cannot be stored"
	if le, ok := errors.AsType[*inbound.Error](err); ok {
		reason = le.Reason
	}
	if r.reasons == nil {
		r.reasons = map[string]int{}
	}
	r.reasons[reason]++
	r.refused++
	if len(r.examples) < shown {
		r.examples = append(r.examples, refusal{number, reason, where.String(), err})
	}
}

// add adds the counts of another report.
func (r *report) add(o report) {
	r.lines += o.lines
	r.bytes += o.bytes
	r.blank += o.blank
	r.stored += o.stored
	r.points += o.points
	r.merged += o.merged
	r.unchanged += o.unchanged
	r.journaled += o.journaled
	r.replaced += o.replaced
	r.refused += o.refused
	r.undelivered += o.undelivered
	if r.reasons == nil {
		r.reasons = map[string]int{}
	}
	for reason, n := range o.reasons {
		r.reasons[reason] += n
	}
}

// unread returns how many lines are neither stored nor refused nor undelivered, because the input ended with an error.
func (r *report) unread() int { return r.lines - r.stored - r.refused - r.undelivered }

// print prints the counts. Those of each column add up to the one before it.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%9d lines, and %d blank ones and comments\n", r.lines, r.blank)
	r.printOutcomes(w, "line")
}

// printMetrics prints the counts of data points of OTLP, in the same way.
func (r *report) printMetrics(w io.Writer) {
	fmt.Fprintf(w, "%9d data points, and %d without a value\n", r.lines, r.blank)
	r.printOutcomes(w, "data point")
}

// printMessages prints the counts of messages of JSON, in the same way.
func (r *report) printMessages(w io.Writer) {
	fmt.Fprintf(w, "%9d messages, and %d without a value\n", r.lines, r.blank)
	r.printOutcomes(w, "message")
}

func (r *report) printOutcomes(w io.Writer, noun string) {
	fmt.Fprintf(w, "%9d stored, as %d points\n", r.stored, r.points)
	if r.unchanged > 0 {
		fmt.Fprintf(w, "%19d points left out, as nothing has changed\n", r.unchanged)
	}
	if r.journaled > 0 {
		fmt.Fprintf(w, "%19d through the journal\n", r.journaled)
	}
	if r.merged > 0 {
		fmt.Fprintf(w, "%19d merged into the point of another %s of the same series and time\n", r.merged, noun)
		fmt.Fprintf(w, "%19d of these gave a field another value\n", r.replaced)
	}
	fmt.Fprintf(w, "%9d refused\n", r.refused)
	for _, reason := range slices.Sorted(maps.Keys(r.reasons)) {
		fmt.Fprintf(w, "%19d %s\n", r.reasons[reason], reason)
	}
	if r.undelivered > 0 {
		fmt.Fprintf(w, "%9d may be stored or not; send them again\n", r.undelivered)
	}
	if n := r.unread(); n > 0 {
		fmt.Fprintf(w, "%9d not stored, as the input ended early; send them again\n", n)
	}
}

// why lists the first refused lines in one sentence each.
func (r *report) why() string {
	texts := make([]string, len(r.examples))
	slices.SortStableFunc(r.examples, func(a, b refusal) int { return a.number - b.number })
	for i, e := range r.examples {
		texts[i] = e.where + ": " + e.err.Error()
	}
	if more := r.refused - len(r.examples); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
