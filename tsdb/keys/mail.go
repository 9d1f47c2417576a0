package keys

import "strings"

// hasMail reports whether s contains a mail address.
func hasMail(s string) bool {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '@':
			if isMail(s[:i], s[i+1:]) {
				return true
			}
		case strings.HasPrefix(s[i:], "%40"): // as in a URL
			if isMail(s[:i], s[i+3:]) {
				return true
			}
		}
	}
	return false
}

// isMail reports whether before ends with the name of a mailbox and after begins with a domain.
func isMail(before, after string) bool {
	if before == "" {
		return false
	}
	if c := before[len(before)-1]; !isWord(c) && !strings.ContainsRune("_-+!#$&'*/=?^`{|}~\"", rune(c)) {
		return false
	}
	label, dots, letters := 0, 0, true
	for i := range len(after) {
		c := after[i]
		if isWord(c) {
			label++
			letters = letters && isLetter(c)
			continue
		}
		if dots > 0 && label > 1 && letters {
			return true
		}
		switch {
		case c == '-' && label > 0:
			letters = false
		case c == '.' && label > 0:
			dots++
			label, letters = 0, true
		default:
			return false
		}
	}
	return dots > 0 && label > 1 && letters
}
