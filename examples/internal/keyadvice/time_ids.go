package keyadvice

import "strings"

// timeID is a kind of id that begins with its creation time, so that ids sort by time.
type timeID struct {
	what        string
	uuid        byte   // the version of a UUID, 0 for other kinds
	size        int    // in digits
	digits      string // in the order of their values; without small letters, small letters count as capitals
	first, last string // prefixes of ids made at the earliest and the latest plausible time
	mixed       bool   // an id has small and capital letters
}

const (
	crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	capitals  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	base62    = "0123456789" + capitals + "abcdefghijklmnopqrstuvwxyz"
	hexDigits = "0123456789ABCDEF"
	// gregorian is the time from October 1582, when the time of a UUID of version 6 begins, to 1970, in seconds.
	gregorian = 12_219_292_800
)

var timeIDs = []timeID{
	{what: "UUIDs of version 7", uuid: '7', size: 32, digits: hexDigits, first: written(earliest*1000, hexDigits, 12), last: written(latest*1000, hexDigits, 12)},
	{
		what: "UUIDs of version 6", uuid: '6', size: 32, digits: hexDigits, // tenths of microseconds, of which the version cuts 12 bits off
		first: written((earliest+gregorian)*1e7>>12, hexDigits, 12), last: written((latest+gregorian)*1e7>>12, hexDigits, 12),
	},
	{what: "ULIDs", size: 26, digits: crockford, first: written(earliest*1000, crockford, 10), last: written(latest*1000, crockford, 10)},
	{what: "KSUIDs", size: 27, digits: base62, first: "0lSGGm", last: "6sZIqI", mixed: true}, // from March 2017, when they were new, to 2040
}

// written returns a number in some digits, padded with zeros.
func written(n uint64, digits string, size int) string {
	b := make([]byte, size)
	for i := size - 1; i >= 0; i-- {
		b[i] = digits[n%uint64(len(digits))]
		n /= uint64(len(digits))
	}
	return string(b)
}

func (k timeID) is(s string) bool {
	if k.uuid != 0 {
		if version, ok := isUUID(s); !ok || version != k.uuid {
			return false
		}
		s = strings.ReplaceAll(s, "-", "")
	}
	if len(k.digits) <= 36 {
		s = strings.ToUpper(s)
	}
	if len(s) != k.size || s[:len(k.first)] < k.first || s[:len(k.last)] > k.last || strings.Trim(s, k.digits) != "" {
		return false
	}
	return !k.mixed || s != strings.ToLower(s) && s != strings.ToUpper(s)
}

// isTimeID reports whether s is any kind of id that begins with the time.
func isTimeID(s string) bool {
	for _, k := range timeIDs {
		if k.is(s) {
			return true
		}
	}
	return false
}
