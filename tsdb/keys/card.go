package keys

import "strconv"

// hasCard reports whether s contains a payment card number: the digits of a scheme with a correct check digit, in one
// piece or in a card's groups with equal separators. Letters next to digits make them part of a code.
func hasCard(s string) bool {
	for i := range len(s) {
		if isDigit(s[i]) && (i == 0 || !isWord(s[i-1])) && isCard(s[i:]) {
			return true
		}
	}
	return false
}

// isCard reports whether s begins with a card number.
func isCard(s string) bool {
	var digits [19]byte
	n, groups, separator := 0, 0, byte(0)
	for i := 0; ; i++ {
		begin := i
		for ; i < len(s) && isDigit(s[i]) && n < len(digits); i++ {
			digits[n] = s[i]
			n++
		}
		groups = 100*groups + i - begin
		switch {
		case i == begin || i < len(s) && isWord(s[i]):
			return false
		case isGrouped(groups, n) && isScheme(digits[:n]) && luhn(digits[:n]):
			return true
		case i == len(s) || s[i] != ' ' && s[i] != '-' || separator != 0 && s[i] != separator:
			return false
		}
		separator = s[i]
	}
}

// isGrouped reports whether n digits are in one group, or in groups as on cards: groups has two decimal digits for the
// length of each.
func isGrouped(groups, n int) bool {
	switch groups {
	case n:
		return n >= 14
	case 4_04_04_04, 4_04_04_04_03, 4_06_05, 4_06_04:
		return true
	}
	return false
}

// isScheme reports whether digits, 14 to 19 of them, begin like a card scheme's numbers of that length.
func isScheme(digits []byte) bool {
	head, err := strconv.Atoi(string(digits[:4]))
	if err != nil {
		return false
	}
	within := func(low, high int) bool { return low <= head && head <= high }
	switch len(digits) {
	case 14: // Diners Club
		return within(3000, 3059) || within(3600, 3699) || within(3800, 3999)
	case 15: // American Express
		return within(3400, 3499) || within(3700, 3799)
	case 16: // Mastercard, Mir
		if within(5100, 5599) || within(2221, 2720) || within(2200, 2204) {
			return true
		}
	}
	long := within(6011, 6011) || within(6440, 6599) || within(6200, 6299) || within(3528, 3589) // Discover, UnionPay, JCB
	visa := within(4000, 4999) && len(digits) != 17 && len(digits) != 18
	return len(digits) >= 16 && (long || visa)
}

// luhn reports whether the last of some decimal digits is the check digit of the others. One random number in ten has
// one.
func luhn(digits []byte) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}
