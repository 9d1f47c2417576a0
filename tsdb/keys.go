package tsdb

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// PadUint returns n in decimal with leading zeros, width digits in all, so that parts sort by number. Width is 1 to 20; a
// number that needs more digits than that would sort wrongly and is refused with ErrInvalid.
func PadUint(n uint64, width int) (string, error) {
	if width < 1 || width > 20 {
		return "", invalid.New(ErrInvalid, "width", strconv.Itoa(width), "1 to 20 digits")
	}
	s := fmt.Sprintf("%0*d", width, n)
	if len(s) > width {
		return "", invalid.New(ErrInvalid, "number", s, fmt.Sprintf("at most %d digits", width))
	}
	return s, nil
}

// ReverseDigits returns the 20 decimal digits of a sequential id in reverse. Ids handed out one after the other then lie
// apart, and the newest of them, often the busiest, are not all on one server. Their numerical order is lost.
func ReverseDigits(id uint64) string {
	b := fmt.Appendf(nil, "%020d", id)
	slices.Reverse(b)
	return string(b)
}

// UnreverseDigits returns the id that ReverseDigits was given. Other text is refused with ErrInvalid.
func UnreverseDigits(part string) (uint64, error) {
	b := []byte(part)
	slices.Reverse(b)
	id, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil || ReverseDigits(id) != part {
		return 0, invalid.New(ErrInvalid, "reversed id", invalid.Quote(part),
			fmt.Sprintf("20 digits of a number up to %d, last first", uint64(math.MaxUint64)))
	}
	return id, nil
}

// ReverseLabels returns a domain name with its labels in reverse ("maps.example.com" becomes "com.example.maps"), so that
// the names of one domain lie together. It is its own inverse.
func ReverseLabels(domain string) string {
	labels := strings.Split(domain, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".")
}
