package rowkey

import (
	"math"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/tenant"
)

// Group identifies the rows of one kind of one tenant's dataset, which are next to each other. The zero Group means
// unknown: rows of other programs.
type Group struct {
	Tenant        tenant.ID
	Dataset, Kind string // Kind is empty for points
}

// GroupOf returns the group of a key, and the range of all its rows. It returns false for keys that belong to no group.
func GroupOf(key string) (g Group, all Range, ok bool) {
	id, ok := TenantOf(key)
	if !ok {
		return Group{}, Range{}, false
	}
	dataset, kind, ok := KindOf(key)
	if !ok {
		return Group{}, Range{}, false
	}
	rest := key[len(id.String())+1:]
	prefix := key[:len(id.String())+1+strings.IndexByte(rest, delim)]
	return Group{Tenant: id, Dataset: dataset, Kind: kind}, Range{Start: prefix + string(rune(delim)), Limit: prefix + string(rune(afterDel))}, true
}

// Cuts divides the range of the rows of all tenants at keys, into consecutive ranges. Rows of other programs may be
// among them. It ignores keys outside the range, and repeated keys.
func Cuts(cuts []string) []Range {
	rest := TenantsAfter(tenant.ID{})
	var parts []Range
	for _, key := range slices.Sorted(slices.Values(cuts)) {
		if key > rest.Start && key < rest.Limit {
			parts = append(parts, Range{Start: rest.Start, Limit: key})
			rest.Start = key
		}
	}
	return append(parts, rest)
}

// Between returns a key between two keys, about share of the way from low to high, computed from the first numbers or
// bytes in which they differ. Shares below 1 choose all of these numbers, low's and high's too, equally often. Between
// returns low if no key is between them.
func Between(low, high string, share float64) string {
	same := 0
	for same < len(low) && same < len(high) && low[same] == high[same] {
		same++
	}
	digits := same
	for digits < same+betweenDepth && digits < max(len(low), len(high)) && digitAt(low, digits, same) && digitAt(high, digits, same) {
		digits++
	}
	first, base, depth := byte('0'), 10.0, digits-same
	if depth == 0 {
		first, base, depth = 0, 256, betweenDepth/3
	}
	// Each place is computed separately: all together would be too large a number for a float.
	at := func(key string) (x float64) {
		for i := same + depth - 1; i >= same; i-- {
			x /= base
			if i < len(key) {
				x += float64(key[i]-first) / base
			}
		}
		return x
	}
	x := at(high) - at(low)
	if base == 10 {
		x += math.Pow10(-depth)
	}
	x = at(low) + x*share
	key := []byte(low[:same])
	for range depth {
		x *= base
		d := min(max(math.Floor(x), 0), base-1)
		key = append(key, first+byte(d))
		x -= d
	}
	return min(max(low, string(key)), max(low, high))
}

// betweenDepth is how many places Between takes into account.
const betweenDepth = 12

// digitAt reports whether a key has a digit at an index. It also returns true past the end of the key, if the index is
// behind the first one that counts: the number was cut off.
func digitAt(key string, i, first int) bool {
	if i >= len(key) {
		return i > first
	}
	return isDigit(key[i])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// EntityOf returns the range of the rows of the entity of a key, in the space of the key, and the digits of its reverse
// time as a number. It returns false for a key that does not end with a time, or with identity with a time and an id.
func EntityOf(key string, identity bool) (all Range, reverse float64, ok bool) {
	if key, _, ok = cutID(key, identity); !ok {
		return Range{}, 0, false
	}
	return timeOf(key)
}

// timeOf is EntityOf for a key that ends with a time.
func timeOf(key string) (all Range, reverse float64, ok bool) {
	cut := len(key) - ReverseLen
	if cut < 1 || key[cut-1] != delim {
		return Range{}, 0, false
	}
	units, ok := parseReverse(key[cut:])
	return Range{Start: key[:cut], Limit: key[:cut-1] + string(rune(afterDel))}, float64(maxUnits - units), ok
}

// Within returns the intersection of r and another range.
func (r Range) Within(o Range) Range {
	return Range{Start: max(r.Start, o.Start), Limit: min(r.Limit, o.Limit)}
}
