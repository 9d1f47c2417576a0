package privacy

import (
	"errors"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// ErrPersonal is wrapped by every error about a part of a key that looks like personal data.
var ErrPersonal = errors.New("privacy: looks like personal data")

// Check returns an error that matches ErrPersonal where the value of a key field holds what looks like a mail address, a
// phone number or a payment card number. The error names the field and what the value looks like, and does not show it. Check
// has the form of CheckKeys of tsdb.SchemaOptions; one that leaves a field out is a function around it.
//
// A mail address has a name, an @ (or %40) and a domain that ends with letters. A phone number is written with + (or %2B) and
// 8 to 15 digits, as tel:…, in North America's groups (415-555-0132), or with a leading zero and spaces. A card number is 14
// to 19 digits that begin as a card scheme's and end with a right check digit, in one piece or in a card's groups. Other bare
// digits pass: counters, times, serial numbers. So do UUIDs, addresses of IP and of hardware, decimal coordinates, and hashes.
// Of random numbers of 16 digits about one in forty looks like a card's.
//
// It looks at each byte a few times, allocates nothing where it finds nothing, and is safe for concurrent use.
func Check(field, part string) error {
	switch {
	case hasMail(part):
		return personal(field, "a mail address")
	case hasPrefixedPhone(part):
		return personal(field, "a phone number")
	}
	for i := 0; i < len(part); {
		if !isDigit(part[i]) {
			i++
			continue
		}
		n := numberAt(part, i)
		switch {
		case n.isCard():
			return personal(field, "a payment card number")
		case n.isNorthAmerican(), n.isNational():
			return personal(field, "a phone number")
		}
		i = n.end
	}
	return nil
}

func personal(field, what string) error {
	return invalid.New(ErrPersonal, "key field "+field, "like "+what+" (not shown)", "what names nobody, such as an opaque ID or a keyed hash")
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80 }

// isWord reports whether c continues a word: digits beside it are a part of some name or code.
func isWord(c byte) bool { return isDigit(c) || isLetter(c) }
