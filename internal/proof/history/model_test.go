package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// slots is how many points an entity can have. There are few, so that clients meet at the same points.
const slots = 5

// cell is what a point holds: two fields, each the number of the write that set it last, or 0 for none. The zero cell
// is no point. Only points of records and structs have a second field.
type cell [2]int32

func (c cell) absent() bool { return c == cell{} }

// state is what an entity holds.
type state [slots]cell

// action is what an operation does.
type action uint8

const (
	look   action = iota // changes nothing
	set                  // replaces the point
	insert               // writes the point if there is none
	merge                // replaces the fields that it has
	remove               // deletes the point
)

// op is an operation on an entity, or on one of its points.
type op struct {
	action action
	slot   int
	value  cell
	// maybe is set for what may have happened or not: a write without an answer, or one attempt more than was needed.
	maybe bool
	// late is set for a maybe without an end. If it comes behind all other operations, nobody has seen whether it has
	// happened.
	late bool
	seen sights // of a look
	what string // the call, for people
}

// sight is what a call has seen of a point.
type sight struct {
	is    presence
	value cell // if is is equal or partly
}

// anything is the value of a field that a call has not seen.
const anything = -1

// fits reports whether a point has the fields that were seen.
func (s sight) fits(c cell) bool {
	for i, v := range s.value {
		if v != anything && v != c[i] {
			return false
		}
	}
	return true
}

type presence uint8

const (
	unseen presence = iota
	absent
	present // with any value
	equal
	partly // with the fields of value, except those that are anything; the point may be absent
)

// sights are what a call has seen of an entity.
type sights [slots]sight

// sightOf returns a sight of one point.
func sightOf(slot int, saw sight) (seen sights) {
	seen[slot] = saw
	return seen
}

// apply returns the state after an operation, and whether the operation is possible in this state.
func (o *op) apply(s state) (state, bool) {
	at := &s[o.slot]
	switch o.action {
	case set:
		*at = o.value
	case insert:
		if !at.absent() {
			return s, false
		}
		*at = o.value
	case merge:
		for i, v := range o.value {
			if v != 0 {
				at[i] = v
			}
		}
	case remove:
		*at = cell{}
	case look:
		for i, saw := range o.seen {
			switch {
			case saw.is == absent && !s[i].absent(), saw.is == present && s[i].absent(), saw.is == equal && s[i] != saw.value,
				saw.is == partly && !saw.fits(s[i]):
				return s, false
			}
		}
	}
	return s, true
}

// model is an entity, or one of its points, for Porcupine.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{state{}} },
	Step: func(s, input, _ any) []any {
		before, o := s.(state), input.(*op)
		after, possible := o.apply(before)
		switch {
		case o.maybe && !possible:
			return []any{before}
		case o.maybe && !o.late && after != before:
			return []any{before, after}
		case possible:
			return []any{after}
		}
		return nil
	},
	DescribeOperation: func(input, _ any) string { return input.(*op).String() },
}).ToModel()

// String returns the operation as a line of a report.
func (o *op) String() string {
	text := []string{o.what}
	switch o.action {
	case look:
		for i, saw := range slices.Backward(o.seen[:]) {
			switch saw.is {
			case absent:
				text = append(text, fmt.Sprintf("%d=none", i))
			case present:
				text = append(text, fmt.Sprintf("%d=some", i))
			case equal:
				text = append(text, fmt.Sprintf("%d=%v", i, saw.value))
			case partly:
				text = append(text, fmt.Sprintf("%d~%v", i, saw.value))
			}
		}
	case remove:
		text = append(text, fmt.Sprintf("%d deleted", o.slot))
	default:
		text = append(text, fmt.Sprintf("%d:=%v", o.slot, o.value))
	}
	if o.maybe {
		text = append(text, "(maybe)")
	}
	return strings.Join(text, " ")
}
