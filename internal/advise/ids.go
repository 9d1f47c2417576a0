package advise

import (
	"strconv"
	"strings"
)

// plausible reports whether a time in seconds since 1970 is one at which an id of today may have been made.
func plausible(seconds uint64) bool { return seconds >= earliest && seconds <= latest }

// isUUID reports whether s is a UUID as it is written, with its version.
func isUUID(s string) (version byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return 0, false
	}
	return s[14], isHex(s[:8]) && isHex(s[9:13]) && isHex(s[14:18]) && isHex(s[19:23]) && isHex(s[24:])
}

func isUUID7(s string) bool {
	version, ok := isUUID(s)
	if !ok || version != '7' {
		return false
	}
	ms, err := strconv.ParseUint(s[:8]+s[9:13], 16, 64)
	return err == nil && plausible(ms/1000)
}

// isUUID6 reports whether s is a UUID of version 6, which begins with the tenths of microseconds since October 1582.
func isUUID6(s string) bool {
	const until1970 = 12_219_292_800 // seconds
	version, ok := isUUID(s)
	if !ok || version != '6' {
		return false
	}
	n, err := strconv.ParseUint(s[:8]+s[9:13]+s[15:18], 16, 64)
	return err == nil && n/1e7 > until1970 && plausible(n/1e7-until1970)
}

// isKSUID reports whether s is a KSUID: 27 digits to the base of 62, of 20 bytes of which the first four are the seconds since
// May 2014. They sort as their bytes do. One without small or without capital letters is a number or a code of another kind.
func isKSUID(s string) bool {
	const (
		first = "0lSGGm" // of March 2017, when nobody had them yet
		last  = "6sZIqI" // of the end of the times that are looked for
	)
	if len(s) != 27 || s < first || s > last {
		return false
	}
	small, capital := false, false
	for i := range len(s) {
		if !isAlphanumeric(s[i]) {
			return false
		}
		small = small || s[i] >= 'a'
		capital = capital || s[i] >= 'A' && s[i] <= 'Z'
	}
	return small && capital
}

// isXID reports whether s is an xid: 20 digits to the base of 32, the last of one bit, of 12 bytes of which the first four are the
// seconds since 1970.
func isXID(s string) bool {
	if len(s) != 20 || s[19] != '0' && s[19] != 'g' || isDigits(s) {
		return false
	}
	seconds := uint64(0)
	for i := range len(s) {
		c := s[i]
		digit := uint64(c - '0')
		switch {
		case c >= 'a' && c <= 'v':
			digit = uint64(c-'a') + 10
		case c < '0' || c > '9':
			return false
		}
		if i < 7 {
			seconds = seconds<<5 | digit
		}
	}
	return plausible(seconds >> 3)
}

// isULID reports whether s is a ULID: 26 digits to the base of 32, of which the first ten are the milliseconds since 1970.
func isULID(s string) bool {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	if len(s) != 26 {
		return false
	}
	ms := uint64(0)
	for i, c := range []byte(strings.ToUpper(s)) {
		d := strings.IndexByte(digits, c)
		if d < 0 {
			return false
		}
		if i < 10 {
			ms = ms<<5 | uint64(d)
		}
	}
	return plausible(ms / 1000)
}

// isObjectID reports whether s is an id of 12 bytes in hexadecimal that begins with the seconds since 1970.
func isObjectID(s string) bool {
	if len(s) != 24 || !isHex(s) {
		return false
	}
	seconds, err := strconv.ParseUint(s[:8], 16, 64)
	return err == nil && plausible(seconds)
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return s != ""
}

// areRandom reports whether nearly all values look random, and differ in where they have letters and where digits: names that
// are put together of words and numbers do not.
func areRandom(values []string) bool {
	n := 0
	patterns := map[string]bool{}
	for _, v := range values {
		if isRandom(v) {
			n++
			patterns[pattern(v)] = true
		}
	}
	return float64(n) >= hashes*float64(len(values)) && 2*len(patterns) >= len(values)
}

// pattern returns s with one letter for all letters and one digit for all digits.
func pattern(s string) string {
	b := []byte(s)
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			b[i] = '0'
		case isAlphanumeric(c):
			b[i] = 'a'
		}
	}
	return string(b)
}

// isRandom reports whether s looks like a hash or a random id: a UUID that does not begin with the time, or a long text of
// hexadecimal or other digits in which letters and numbers alternate as they do in no name.
func isRandom(s string) bool {
	if _, ok := isUUID(s); ok {
		return !isUUID7(s) && !isUUID6(s)
	}
	if len(s) < 16 {
		return false
	}
	changes, separators := 0, 0
	for i := range len(s) {
		c := s[i]
		switch digit, letter := c >= '0' && c <= '9', c|0x20 >= 'a' && c|0x20 <= 'z'; {
		case !digit && !letter:
			if !strings.ContainsRune("-_+/=", rune(c)) {
				return false
			}
			separators++
		case i > 0 && digit != (s[i-1] >= '0' && s[i-1] <= '9') && isAlphanumeric(s[i-1]):
			changes++
		}
	}
	return separators <= len(s)/8 && changes >= len(s)/8
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
