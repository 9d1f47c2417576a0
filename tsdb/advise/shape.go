package advise

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// form is what the values of a key field look like.
type form int

const (
	plain   form = iota
	clock        // times
	clockID      // ids that begin with the time at which they were made
	counter      // numbers, one after the other
	named        // such numbers behind a text: device-0001
	arrival      // whatever they are, each new one sorts behind all others
	random       // hashes and random ids
)

// field is one field of the key, and the values that the sample has of it.
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
		return arrival, "values that grow in the order in which they came"
	case len(v) >= fewestHashes && areRandom(v):
		return random, "hashes or random ids"
	}
	return plain, ""
}

// isID reports whether numbers that look like times are known to be none, but meters, cells of a map or ids. Such numbers that
// follow one another are as many counters as times: of a few of them with rates nothing is said.
func (a *analysis) isID(f *field, isDense bool) bool {
	if !a.rated() {
		return false
	}
	if isDense {
		return len(f.values) < fewestInOrder || a.evenly(f)
	}
	return len(f.values) >= fewestAtTheEnd && a.evenly(f)
}

// evenly reports whether the entities with the lowest, the highest and all other values of f, which has ten and more, write alike:
// nobody goes on to write to a time that is over.
func (a *analysis) evenly(f *field) bool {
	all := make([]*entity, len(a.Entities))
	for i := range all {
		all[i] = &a.Entities[i]
	}
	rates := f.rates(all) // of times in one unit, which sort as texts
	end := len(rates) / endPart
	low, rest, high := rates[:end], rates[end:len(rates)-end], rates[len(rates)-end:]
	if max(sum(low), sum(high)) >= endShare*a.total {
		return false
	}
	usual := median(rest)
	return usual > 0 && max(median(low), median(high)) <= endTimes*usual
}

// arrives reports whether it is known that new values of f sort behind old ones.
func (a *analysis) arrives(f *field) bool { return a.Arrival && f.index == 0 && a.ascends() }

// ascends reports whether the first parts of the entities came in their order, or all in the opposite one, tenant by tenant.
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

// numeric are values that are numbers behind a text that they have in common.
type numeric struct {
	prefix string
	n      []uint64 // sorted
}

// numbers reads values as numbers behind one text, which may be empty, and reports whether they all are, and whether all have
// the same number of digits.
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

// dense reports whether the numbers leave out few between the first and the last, of which the sample holds a share.
func (n numeric) dense(share float64) bool {
	span := float64(n.n[len(n.n)-1] - n.n[0])
	return span < dense*float64(len(n.n))/share
}

// The times that numbers are looked for in, in seconds since 1970: 2010 to 2040.
const (
	earliest = 1_262_304_000
	latest   = 2_208_988_800
)

// times reports whether the numbers are times in some unit since 1970, or such times counted down from the largest number.
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

// dates are the forms of times in text: in their order from the coarsest to the finest, and days as people write them, whose newest
// rows lie together all the same.
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

// isWeek reports whether s is a week as ISO 8601 writes it: 2026-W47 or 2026W47.
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
