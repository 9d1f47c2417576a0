package keyadvice

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// form is the form of a key field's values.
type form int

const (
	plain   form = iota
	clock        // times
	clockID      // ids that begin with their creation time
	counter      // numbers, one after the other
	named        // such numbers behind a text: device-0001
	arrival      // values of any form; each new one sorts after all others
	random       // hashes and random ids
)

// field is one field of the key, with its values in the sample.
type field struct {
	index  int
	name   string
	values []string // distinct, sorted
	form   form
	what   string // the form, in words
}

func (a *analysis) field(i int) *field {
	f := &field{index: i, name: a.Fields[i]}
	f.values = make([]string, len(a.Entities))
	for j := range a.Entities {
		f.values[j] = a.Entities[j].Parts[i]
	}
	slices.Sort(f.values)
	f.values = slices.Compact(f.values)
	f.form, f.what = a.formOf(f)
	return f
}

func (a *analysis) formOf(f *field) (form, string) {
	v := f.values
	if len(v) >= fewestDates && all(v, isDate) {
		return clock, "dates or times"
	}
	for _, k := range timeIDs {
		if len(v) >= fewestNumbers && all(v, k.is) {
			return clockID, k.what + ", which begin with the time"
		}
	}
	if n, _, ok := numbers(v); ok {
		if n.snowflakes() {
			return clockID, "snowflake ids, which begin with the time"
		}
		isDense := n.dense(a.Share)
		if what, ok := n.times(); ok && !a.isID(f, isDense) {
			return clock, what
		}
		if isDense && len(v) >= fewestInOrder {
			if n.prefix != "" && !a.arrives(f) {
				return named, "numbers that follow one another"
			}
			return counter, "numbers that follow one another"
		}
	}
	switch {
	case a.arrives(f):
		return arrival, "values that sort in the order in which they arrived"
	case len(v) >= fewestHashes && areRandom(v):
		return random, "hashes or random ids"
	}
	return plain, ""
}

// isID reports whether numbers that look like times are known to be other numbers: meters, map cells or ids.
// Consecutive numbers may be times or counters; for a few of them with rates, nothing is reported.
func (a *analysis) isID(f *field, isDense bool) bool {
	if !a.rated() {
		return false
	}
	if isDense {
		return len(f.values) < fewestInOrder || a.evenly(f)
	}
	return len(f.values) >= fewestAtTheEnd && a.evenly(f)
}

// evenly reports whether the entities with the lowest, the highest and all other values of f write equally. f has at
// least ten values. Programs do not continue to write to a past time.
func (a *analysis) evenly(f *field) bool {
	all := make([]*entity, len(a.Entities))
	for i := range all {
		all[i] = &a.Entities[i]
	}
	rates := f.rates(all) // times in one unit sort as text
	end := len(rates) / endPart
	low, rest, high := rates[:end], rates[end:len(rates)-end], rates[len(rates)-end:]
	if max(sum(low), sum(high)) >= endShare*a.total {
		return false
	}
	usual := median(rest)
	return usual > 0 && max(median(low), median(high)) <= endTimes*usual
}

// arrives reports whether new values of f are known to sort after old ones.
func (a *analysis) arrives(f *field) bool { return a.Arrival && f.index == 0 && a.ascends() }

// ascends reports whether the first parts of each tenant's entities arrived in ascending order, or all in descending
// order.
func (a *analysis) ascends() bool {
	order := make([]*entity, len(a.Entities))
	for i := range a.Entities {
		order[i] = &a.Entities[i]
	}
	slices.SortFunc(order, func(a, b *entity) int { return a.arrived - b.arrived })
	last, seen := map[string]string{}, map[string]bool{}
	up, down := 0, 0
	for _, e := range order {
		id := e.group(1)
		if seen[id] {
			continue
		}
		seen[id] = true
		before, ok := last[e.Tenant]
		last[e.Tenant] = e.Parts[0]
		switch {
		case !ok:
		case before < e.Parts[0]:
			up++
		default:
			down++
		}
	}
	steps := up + down
	return steps >= fewestInOrder && float64(max(up, down)) >= inOrder*float64(steps)
}

func all(values []string, is func(string) bool) bool {
	for _, v := range values {
		if !is(v) {
			return false
		}
	}
	return true
}

// numeric are values that are numbers after a common text.
type numeric struct {
	prefix string
	n      []uint64 // sorted
}

// numbers parses values as numbers after a common text, which may be empty. It reports whether all are numbers, and
// whether all have the same number of digits.
func numbers(values []string) (numeric, bool, bool) {
	if len(values) < fewestNumbers {
		return numeric{}, false, false
	}
	prefix := strings.TrimRight(values[0], "0123456789")
	out := numeric{prefix: prefix, n: make([]uint64, len(values))}
	same := true
	for i, v := range values {
		digits, ok := strings.CutPrefix(v, prefix)
		if !ok || !isDigits(digits) {
			return numeric{}, false, false
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return numeric{}, false, false
		}
		same = same && len(v) == len(values[0])
		out.n[i] = n
	}
	slices.Sort(out.n)
	return out, same, true
}

// dense reports whether the numbers omit few between the first and the last, given the share of the sample.
func (n numeric) dense(share float64) bool {
	span := float64(n.n[len(n.n)-1] - n.n[0])
	return span < dense*float64(len(n.n))/share
}

// The range of times to detect, in seconds since 1970: 2010 to 2040.
const (
	earliest = 1_262_304_000
	latest   = 2_208_988_800
)

// times reports whether the numbers are times in a unit since 1970, or such times subtracted from the largest number.
func (n numeric) times() (string, bool) {
	if n.prefix != "" {
		return "", false
	}
	first, last := n.n[0], n.n[len(n.n)-1]
	for _, u := range []struct {
		name string
		unit uint64
	}{{"seconds", 1}, {"milliseconds", 1e3}, {"microseconds", 1e6}, {"nanoseconds", 1e9}} {
		low, high := earliest*u.unit, latest*u.unit
		if low <= first && last <= high {
			return "times in " + u.name + " since 1970", true
		}
		if math.MaxInt64-high <= first && last <= math.MaxInt64-low {
			return "times in " + u.name + " that are counted down", true
		}
	}
	return "", false
}

// dates are the forms of times in text, from the coarsest to the finest. They include days as people write them:
// their newest rows are also next to each other.
var dates = []string{
	"2006-01", "2006-01-02", "2006-01-02T15", "2006-01-02 15", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05",
	"2006-01-02 15:04:05", time.RFC3339Nano, "2006/01/02", "20060102", "2006010215", "200601021504", "20060102150405", "20060102T150405Z",
	"02-01-2006", "02.01.2006", "02/01/2006", "01-02-2006", "01/02/2006",
}

func isDate(s string) bool {
	if len(s) < len("2006-01") || len(s) > len(time.RFC3339Nano) || !isDigits(s[:2]) {
		return false
	}
	for _, layout := range dates {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 1990 && t.Year() < 2100 {
			return true
		}
	}
	return isWeek(s)
}

// isWeek reports whether s is an ISO 8601 week: 2026-W47 or 2026W47.
func isWeek(s string) bool {
	year, week, ok := strings.Cut(s, "W")
	year = strings.TrimSuffix(year, "-")
	return ok && len(year) == 4 && isDigits(year) && len(week) == 2 && "01" <= week && week <= "53" && isDigits(week)
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
