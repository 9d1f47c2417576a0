package tsdb

import (
	"fmt"
	"math"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// PadUint returns n in decimal with leading zeros, width digits in all, so that text sorts by number. Width is 1 to 20. A
// number with more digits is refused with ErrInvalid. Use it for text fields; KeyFields.Uint does it for its own.
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

// ReverseDigits returns the 20 decimal digits of a sequential ID in reverse, so that new IDs, often the busiest, are not all
// on one server. The numerical order is lost. Use it for text fields; KeyFields.ReversedID does it for its own.
func ReverseDigits(id uint64) string {
	part, _ := rowkey.ReversedID.Part("", id) // every number fits
	return part
}

// UnreverseDigits returns the ID whose ReverseDigits is part. Other text is refused with ErrInvalid.
func UnreverseDigits(part string) (id uint64, err error) {
	if rowkey.ReversedID.Scan("", part, &id) != nil {
		return 0, invalid.New(ErrInvalid, "reversed id", invalid.Quote(part),
			fmt.Sprintf("20 digits of a number up to %d, last first", uint64(math.MaxUint64)))
	}
	return id, nil
}

// ReverseLabels reverses the labels of a domain name: "maps.example.com" becomes "com.example.maps". Names of one domain are
// then stored next to each other. It accepts any text; applied twice, it returns the original. Use it for text fields;
// KeyFields.ReversedDomain does it for its own.
func ReverseLabels(domain string) string { return rowkey.ReverseLabels(domain) }
