package keyadvice

import "strings"

// isUUID reports whether s is a UUID in its usual form, and returns its version.
func isUUID(s string) (version byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return 0, false
	}
	return s[14], isHex(s[:8]) && isHex(s[9:13]) && isHex(s[14:18]) && isHex(s[19:23]) && isHex(s[24:])
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return s != ""
}

// areRandom reports whether nearly all values look random and differ in the positions of letters and digits. Names
// composed of words and numbers do not.
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

// pattern returns s with all letters replaced by one letter and all digits by one digit.
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

// isRandom reports whether s looks like a hash or a random id: a UUID that does not begin with the time, or a long
// text of hexadecimal or other digits in which letters and digits alternate more than in names.
func isRandom(s string) bool {
	if _, ok := isUUID(s); ok {
		return !isTimeID(s)
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
