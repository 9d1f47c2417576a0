package privacy

import "strings"

// hasPrefixedPhone reports whether s contains a phone number with a plus or tel: in front.
func hasPrefixedPhone(s string) bool {
	for i := 0; i < len(s); i++ {
		if i > 0 && isWord(s[i-1]) {
			continue
		}
		rest, named := s[i:], false
		switch {
		case rest[0] == '+':
			rest = rest[1:]
		case len(rest) > 3 && (rest[:3] == "%2B" || rest[:3] == "%2b"):
			rest = rest[3:]
		case len(rest) > 4 && strings.EqualFold(rest[:4], "tel:"):
			rest, named = rest[4:], true
		default:
			continue
		}
		if rest == "" || !isDigit(rest[0]) {
			continue
		}
		n := numberAt(rest, 0)
		if n.isInternational() || named && len(n.all()) > 0 && n.digits >= 7 && n.digits <= 15 {
			return true
		}
		i += n.end
	}
	return false
}

// isInternational reports whether n, which has a plus in front, is a phone number by E.164.
func (n *number) isInternational() bool {
	groups := n.all()
	if len(groups) == 0 || n.digits < 8 || n.digits > 15 || n.text[0] == '0' {
		return false
	}
	dots, others := 0, 0
	for i := range len(groups) - 1 {
		if n.separator(i) == "." {
			dots++
		} else {
			others++
		}
	}
	// One dot is a decimal point, and dots next to signs are coordinates.
	return dots == 0 || dots > 1 && others == 0
}

// isNorthAmerican reports whether n is grouped as a North American phone number: 415-555-0132, perhaps after a 1.
func (n *number) isNorthAmerican() bool {
	groups := n.all()
	if shaped(groups, 1, 3, 3, 4) && n.text[groups[0].start] == '1' {
		groups = groups[1:]
	}
	return shaped(groups, 3, 3, 4) && n.text[groups[0].start] >= '2' && n.text[groups[1].start] >= '2'
}

// isNational reports whether n looks like a phone number within a country that dials a zero first: 0171 2345678.
// Numbers that are padded with zeros start with two of them.
func (n *number) isNational() bool {
	groups := n.all()
	if len(groups) < 2 || n.digits < 9 || n.digits > 12 || groups[0].len() < 2 {
		return false
	}
	if start := groups[0].start; n.text[start] != '0' || n.text[start+1] == '0' {
		return false
	}
	for i := range len(groups) - 1 {
		if sep := n.separator(i); sep != " " && sep != ") " {
			return false
		}
	}
	return true
}
