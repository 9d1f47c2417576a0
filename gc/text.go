package gc

import (
	"strconv"
	"strings"
	"time"
)

// units are the units of ages in text, those of cbt plus microseconds, largest first.
var units = []struct {
	suffix string
	length time.Duration
}{
	{"d", 24 * time.Hour},
	{"h", time.Hour},
	{"m", time.Minute},
	{"s", time.Second},
	{"ms", time.Millisecond},
	{"us", time.Microsecond},
}

// String returns the policy in the syntax of [Parse]: "never", "maxage=30d", "maxage=30d || (maxage=3d &&
// maxversions=100)". Equal policies have equal text. An age has the largest unit of d, h, m and s that divides it.
//
// A policy that [Policy.Validate] rejects prints as invalid(…) with the invalid input; Parse rejects that text.
func (p Policy) String() string {
	if p.bad != nil {
		return "invalid(" + p.bad.Field + " is " + p.bad.Value + ")"
	}
	if len(p.terms) == 0 {
		return "never"
	}
	var b []byte
	for i, t := range p.terms {
		if i > 0 {
			b = append(b, " || "...)
		}
		b = t.appendText(b, len(p.terms) > 1)
	}
	return string(b)
}

// appendText appends the term. If nested is set, an intersection has parentheses: cbt gives && and || the same
// precedence.
func (t term) appendText(b []byte, nested bool) []byte {
	nested = nested && t.age != 0 && t.versions != 0
	if nested {
		b = append(b, '(')
	}
	if t.age != 0 {
		b = append(b, "maxage="...)
		for _, u := range units {
			if t.age%u.length == 0 {
				b = strconv.AppendInt(b, int64(t.age/u.length), 10)
				b = append(b, u.suffix...)
				break
			}
		}
	}
	if t.age != 0 && t.versions != 0 {
		b = append(b, " && "...)
	}
	if t.versions != 0 {
		b = append(b, "maxversions="...)
		b = strconv.AppendInt(b, int64(t.versions), 10)
	}
	if nested {
		b = append(b, ')')
	}
	return b
}

// MarshalText implements [encoding.TextMarshaler] with the text of [Policy.String]. It returns the error of
// [Policy.Validate].
func (p Policy) MarshalText() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return []byte(p.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler] with [Parse]. On an error, it does not change the policy.
func (p *Policy) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}

// parseAge parses a whole number with a unit, if the product fits a Duration. MaxAge checks the age.
func parseAge(s string) (time.Duration, bool) {
	digits := strings.TrimRight(s, "dhmsu")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	for _, u := range units {
		if s[len(digits):] == u.suffix {
			age := time.Duration(n) * u.length
			return age, age/u.length == time.Duration(n)
		}
	}
	return 0, false
}
