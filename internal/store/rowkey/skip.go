package rowkey

import "strings"

// Past returns r without the keys up to the last one of the entity at path, whose points are in r.
func (s Space) Past(r Range, path string) Range {
	var buf [256]byte
	b := s.AppendEntity(buf[:0], path)
	b[len(b)-1] = afterDel
	return Range{Start: max(r.Start, string(b)), Limit: r.Limit}
}

// Behind returns r without the keys up to the last one that begins with prefix, which ends with a delimiter.
func (r Range) Behind(prefix string) Range {
	return Range{Start: max(r.Start, prefix[:len(prefix)-1]+string(rune(afterDel))), Limit: r.Limit}
}

// Known is an entity and the time of its newest point that is known, in units.
type Known struct {
	Prefix string // of the keys of its points, as AppendEntity returns it
	Newest int64
}

// Through returns the ranges of r without the older points of known entities, which are in r and in the order of their
// keys. For each entity there is a range that begins behind the entity before and ends behind the points of its time.
// The last range is what is left of r behind the last entity.
func (r Range) Through(known []Known) []Range {
	size := 0
	for i := range known {
		size += 2*len(known[i].Prefix) + ReverseLen
	}
	keys := make([]byte, 0, size)
	for i := range known {
		keys = append(keys, known[i].Prefix...)
		keys = appendReverse(keys, uint64(maxUnits-known[i].Newest)+1)
		keys = append(keys, known[i].Prefix...)
		keys[len(keys)-1] = afterDel
	}
	text, start := string(keys), r.Start
	ranges := make([]Range, 0, len(known)+1)
	for i := range known {
		n := len(known[i].Prefix)
		ranges = append(ranges, Range{Start: start, Limit: text[:n+ReverseLen]})
		start, text = text[n+ReverseLen:2*n+ReverseLen], text[2*n+ReverseLen:]
	}
	return append(ranges, Range{Start: start, Limit: r.Limit})
}

// Alphabet is the set of bytes that occur in paths. The zero Alphabet is empty.
type Alphabet [256]bool

// Add adds the bytes of text.
func (a *Alphabet) Add(text string) {
	for i := range len(text) {
		a[text[i]] = true
	}
}

// cutDepth is how many bytes after the common prefix of two keys decide where to cut the range between them. Numbers
// with that many digits, one digit value for each byte and one for the end of the text, times maxCuts, fit into an
// int64.
const (
	cutDepth = 4
	maxCuts  = 1000
)

// Cut cuts r, a range from Under or the rest of one, into up to n ranges, in order. Together they hold the same
// entities, each of them whole. The cuts are spread evenly over the texts that the alphabet can form between the start
// of r and last, the last key known to be in r; if last is unknown, up to the limit. How evenly the entities are spread
// over the ranges depends on their names; a range may be empty.
func (s Space) Cut(r Range, last string, a Alphabet, n int) []Range {
	base := len(s.prefix)
	if s.salts > 0 {
		base += saltLen
	}
	if last <= r.Start || last >= r.Limit {
		last = r.Limit
	}
	if r.Empty() || len(r.Start) < base || !strings.HasPrefix(last, r.Start[:base]) {
		return []Range{r}
	}
	common := base
	for common < len(r.Start) && common < len(last) && r.Start[common] == last[common] {
		common++
	}
	a.Add(last[common:])
	var digits [256]int64 // the digit of a byte: 1 for the first in the alphabet
	var letters []byte
	for c := range a {
		if a[c] {
			letters = append(letters, byte(c))
		}
		digits[c] = int64(len(letters)) // a byte outside the alphabet counts as the next lower one in it
	}
	radix := int64(len(letters) + 1)
	number := func(text string) (n int64) {
		for i := range cutDepth {
			n *= radix
			if i < len(text) {
				n += digits[text[i]]
			}
		}
		return n
	}
	from, to := number(r.Start[common:]), number(last[common:])
	n = min(n, maxCuts)
	var out []Range
	for i := 1; i < n; i++ {
		key := s.aligned(r.Start[:base], last[base:common]+numberText(from+(to-from)*int64(i)/int64(n), radix, letters))
		if key > r.Start && key < r.Limit {
			out = append(out, Range{Start: r.Start, Limit: key})
			r.Start = key
		}
	}
	return append(out, r)
}

// numberText returns the text of a number, up to its first digit that means the end.
func numberText(n, radix int64, letters []byte) string {
	var b [cutDepth]byte
	end := 0
	for i := cutDepth - 1; i >= 0; i-- {
		if d := n % radix; d > 0 {
			b[i] = letters[d-1]
			end = max(end, i+1)
		} else {
			end = i
		}
		n /= radix
	}
	return string(b[:end])
}

// aligned returns the key of a cut at text. If text is within the keys of an entity, it returns the start of that
// entity, because a scan would find an entity twice if the cut divided it.
func (s Space) aligned(base, text string) string {
	end := 0
	for range s.fields {
		i := strings.IndexByte(text[end:], delim)
		if i < 0 {
			return base + text
		}
		end += i + 1
	}
	return base + text[:end]
}
