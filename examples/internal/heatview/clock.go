package heatview

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// near is how far a field that is a time may be from when it was written.
const near = 36 * time.Hour

// layouts of times in text. The beginning of a field counts.
var layouts = []string{"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02", "20060102150405", "200601021504", "2006010215", "20060102"}

// isTime reports whether a field of a key is a time close to at: a count of units since 1970, the same reversed, or a
// date.
func isTime(field string, at time.Time) bool {
	for _, layout := range layouts {
		if len(field) >= len(layout) && (len(field) == len(layout) || !digits(field)) {
			if t, err := time.Parse(layout, field[:len(layout)]); err == nil && closeTo(t, at) {
				return true
			}
		}
	}
	if len(field) < digitsOfAge || len(field) > 20 || !digits(field) {
		return false
	}
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		return false
	}
	for _, unit := range []int64{1, 1e3, 1e6, 1e9} { // a second in each precision
		if closeTo(time.Unix(n/unit, 0), at) || closeTo(time.Unix((math.MaxInt64-n)/unit, 0), at) {
			return true
		}
	}
	return false
}

func closeTo(t, at time.Time) bool { return t.Sub(at).Abs() <= near }

// isPointNow reports whether the time at the end of a store's key is close to at.
func isPointNow(key string, p place, at time.Time) bool {
	rest := strings.TrimPrefix(strings.TrimPrefix(key, p.entity), delim)
	rest, _, _ = strings.Cut(rest, delim)
	return isTime(rest, at)
}
