package rowkey

// Range is the keys from Start up to, but not including, Limit. Both always start with one tenant's prefix.
type Range struct{ Start, Limit string }

// Entity returns the range of the points of the entity at path with newest >= t >= oldest, in units. If newest is
// before oldest, the range is empty: Start is not less than Limit.
func (s Space) Entity(path string, oldest, newest int64) Range {
	var buf [256]byte
	b := s.AppendEntity(buf[:0], path)
	n := len(b)
	b = appendReverse(b, uint64(maxUnits-newest))
	m := len(b)
	b = append(b, b[:n]...)
	b = appendReverse(b, uint64(maxUnits-oldest)+1)
	both := string(b)
	return Range{Start: both[:m], Limit: both[m:]}
}

// Under returns the ranges of all points of the entities below the prefix at path; the empty path means all entities.
// It returns one range, or one for each salt, in order.
func (s Space) Under(path string) []Range {
	if s.salts == 0 {
		return []Range{s.under(nil, path)}
	}
	ranges := make([]Range, s.salts)
	for i := range ranges {
		ranges[i] = s.under(appendSalt(nil, i), path)
	}
	return ranges
}

// UnderAfter returns the ranges of Under for path, without the entities up to and including the one at after.
func (s Space) UnderAfter(path, after string) []Range {
	ranges := s.Under(path)
	for i := range ranges {
		salted := len(s.prefix)
		if s.salts > 0 {
			salted += saltLen
		}
		ranges[i].Start = max(ranges[i].Start, ranges[i].Start[:salted]+after+string(rune(afterDel)))
	}
	return ranges
}

func (s Space) under(salt []byte, path string) Range {
	start := s.prefix + string(salt) + path
	if path != "" {
		start += "#"
	}
	return Range{Start: start, Limit: start[:len(start)-1] + string(rune(afterDel))}
}

// After returns r without the keys up to and including last.
func (r Range) After(last string) Range { return Range{Start: last + "\x00", Limit: r.Limit} }

// Before returns r without the keys from last on.
func (r Range) Before(last string) Range { return Range{Start: r.Start, Limit: last} }

// Empty reports whether no key is in r.
func (r Range) Empty() bool { return r.Start >= r.Limit }
