package keys

import "strconv"

// isCard reports whether one group of n, or several consecutive groups, are a payment card number.
func (n *number) isCard() bool {
	groups := n.groups[:min(n.n, maxGroups)]
	for i := range groups {
		if isCard(n.text, groups[i:i+1]) {
			return true
		}
		for _, size := range [...]int{3, 4, 5} {
			if i+size <= len(groups) && n.isGrouped(i, size) && isCard(n.text, groups[i:i+size]) {
				return true
			}
		}
	}
	return false
}

// isGrouped reports whether size groups from i on are grouped as on cards, with equal separators.
func (n *number) isGrouped(i, size int) bool {
	groups := n.groups[i : i+size]
	if !shaped(groups, 4, 4, 4, 4) && !shaped(groups, 4, 4, 4, 4, 3) && !shaped(groups, 4, 6, 5) && !shaped(groups, 4, 6, 4) {
		return false
	}
	first := n.separator(i)
	if first != " " && first != "-" {
		return false
	}
	for j := i + 1; j < i+size-1; j++ {
		if n.separator(j) != first {
			return false
		}
	}
	return true
}

// isCard reports whether the digits of groups are a card number: the length and first digits of a scheme, and a
// correct check digit.
func isCard(text string, groups []group) bool {
	var digits [19]byte
	n := 0
	for _, g := range groups {
		if g.code || n+g.len() > len(digits) {
			return false
		}
		n += copy(digits[n:], text[g.start:g.end])
	}
	return n >= 14 && isScheme(digits[:n]) && luhn(digits[:n])
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

// luhn reports whether the last of some decimal digits is the check digit of the others. One random number in ten has one.
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
