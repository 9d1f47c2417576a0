package cost

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// term is one part of a count: per for each started group of every, or, with full, for each full group.
type term struct {
	per, every int
	full       bool
}

// shape says how a count grows: the sum of its terms and plus.
type shape struct {
	terms []term
	plus  int
	loose bool // the count is at most that, and at least least, if set
	least *shape
}

func always(n int) shape             { return shape{plus: n} }
func each(per, plus int) shape       { return groupsOf(per, 1, plus) }
func groups(every, plus int) shape   { return groupsOf(1, every, plus) }
func (s shape) atMost() shape        { s.loose = true; return s }
func (s shape) from(low shape) shape { s.loose, s.least = true, &low; return s }

func groupsOf(per, every, plus int) shape {
	return shape{terms: []term{{per: per, every: every}}, plus: plus}
}

// fullGroups is the shape of a call that makes another request after each full page.
func fullGroups(every, plus int) shape {
	return shape{terms: []term{{per: 1, every: every, full: true}}, plus: plus}
}

// and returns the sum of two shapes.
func (s shape) and(o shape) shape {
	s.terms = append(append([]term(nil), s.terms...), o.terms...)
	s.plus += o.plus
	return s
}

// at returns the count at n.
func (s shape) at(n int) int {
	sum := s.plus
	for _, t := range s.terms {
		if t.full {
			sum += t.per * (n / t.every)
		} else {
			sum += t.per * ((n + t.every - 1) / t.every)
		}
	}
	return sum
}

// holds reports whether a count fits the shape.
func (s shape) holds(n, got int) bool {
	if !s.loose {
		return got == s.at(n)
	}
	return got <= s.at(n) && (s.least == nil || got >= s.least.at(n))
}

// grows reports whether the count depends on n.
func (s shape) grows() bool { return len(s.terms) > 0 }

func (s shape) String() string {
	var parts []string
	for _, t := range s.terms {
		parts = append(parts, t.String())
	}
	if s.plus != 0 || len(parts) == 0 {
		parts = append(parts, thousands(s.plus))
	}
	sum := strings.Join(parts, " + ")
	switch {
	case s.least != nil:
		return s.least.String() + " to " + sum
	case s.loose:
		return "≤ " + sum
	}
	return sum
}

func (t term) String() string {
	what := "n"
	switch {
	case t.full:
		what = fmt.Sprintf("⌊n/%s⌋", thousands(t.every))
	case t.every > 1:
		what = fmt.Sprintf("⌈n/%s⌉", thousands(t.every))
	}
	if t.per == 1 {
		return what
	}
	return thousands(t.per) + what
}

// thousands formats a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		shape shape
		text  string
		at    map[int]int
	}{
		{always(0), "0", map[int]int{1: 0}},
		{each(2, 1), "2n + 1", map[int]int{1: 3, 10: 21}},
		{groups(1000, 0), "⌈n/1,000⌉", map[int]int{1: 1, 1000: 1, 1001: 2}},
		{fullGroups(5000, 7).and(fullGroups(10_000, 0)), "⌊n/5,000⌋ + ⌊n/10,000⌋ + 7", map[int]int{4999: 7, 5000: 8, 10_000: 10}},
		{each(1, 1000).atMost(), "≤ n + 1,000", map[int]int{1: 1001}},
		{groupsOf(2, 1000, 0).from(groups(1000, 0)), "⌈n/1,000⌉ to 2⌈n/1,000⌉", map[int]int{1000: 2}},
	} {
		if got := c.shape.String(); got != c.text {
			t.Errorf("got shape %q, want %q", got, c.text)
		}
		for n, want := range c.at {
			if got := c.shape.at(n); got != want || !c.shape.holds(n, want) || c.shape.holds(n, want+1) {
				t.Errorf("%s at %d: got %d, want %d", c.text, n, got, want)
			}
		}
	}
	if low := groupsOf(2, 10, 0).from(groups(10, 0)); low.holds(10, 0) || !low.holds(10, 1) {
		t.Error("a shape with two bounds does not accept its lower bound")
	}
}
