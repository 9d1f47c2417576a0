package tsdb

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// PadUint returns n in decimal with leading zeros, width digits in all, so that parts sort by number. Width is 1 to 20; a
// number that needs more digits than that would sort wrongly and is refused with ErrInvalid. It is for fields of text: one that
// is declared with KeyFields.Uint is written so by Schema.Entity, and refuses what is not.
func PadUint(n uint64, width int) (string, error) {
	kind := rowkey.Uint(width)
	if err := rowkey.CheckKinds([]string{""}, []rowkey.FieldKind{kind}); err != nil {
		return "", invalid.New(ErrInvalid, "width", strconv.Itoa(width), "1 to 20 digits")
	}
	s, err := kind.Part("", n)
	if err != nil {
		return "", invalid.New(ErrInvalid, "number", strconv.FormatUint(n, 10), fmt.Sprintf("at most %d digits", width))
	}
	return s, nil
}

// ReverseDigits returns the 20 decimal digits of a sequential id in reverse. Ids handed out one after the other then lie
// apart, and the newest of them, often the busiest, are not all on one server. Their numerical order is lost. It is for fields
// of text; for others there is KeyFields.ReversedID.
func ReverseDigits(id uint64) string {
	part, _ := rowkey.ReversedID.Part("", id) // which every number fits
	return part
}

// UnreverseDigits returns the id that ReverseDigits was given. Other text is refused with ErrInvalid.
func UnreverseDigits(part string) (id uint64, err error) {
	if rowkey.ReversedID.Scan("", part, &id) != nil {
		return 0, invalid.New(ErrInvalid, "reversed id", invalid.Quote(part),
			fmt.Sprintf("20 digits of a number up to %d, last first", uint64(math.MaxUint64)))
	}
	return id, nil
}

// ReverseLabels returns a domain name with its labels in reverse ("maps.example.com" becomes "com.example.maps"), so that
// the names of one domain lie together. It is its own inverse, and takes any text. It is for fields of text; for others there is
// KeyFields.ReversedDomain.
func ReverseLabels(domain string) string { return rowkey.ReverseLabels(domain) }
