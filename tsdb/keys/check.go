package keys

import (
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// CheckPersonal returns an error if the value of a key field looks like a mail address
// or a payment card number. The error names the field and the kind of data, and does not show the value. It
// can be used as tsdb.SchemaOptions.CheckKeys. To exempt a field, wrap it in a function.
//
// A mail address has a name, an @ (or %40) and a domain that ends with letters.
// A card number has 14 to 19 digits, begins like a card scheme's numbers, and ends with a correct check digit. It is
// in one piece or in a card's groups. Other digits pass: counters, times, serial and phone numbers. So do UUIDs, IP and
// hardware addresses, decimal coordinates, and hashes. About one in forty random numbers of 16 digits looks like a
// card number.
//
// It reads each byte a few times, allocates nothing if it finds nothing, and is safe for concurrent use.
func CheckPersonal(field, part string) error {
	if hasMail(part) {
		return personal(field, "a mail address")
	}
	if hasCard(part) {
		return personal(field, "a payment card number")
	}
	return nil
}

func personal(field, what string) error {
	return invalid.New(invalid.ErrPersonal, "key field "+field, "like "+what+" (not shown)", "text that identifies no person, such as an opaque ID or a keyed hash")
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80 }

// isWord reports whether c continues a word: digits next to it are part of a name or code.
func isWord(c byte) bool { return isDigit(c) || isLetter(c) }
