package rowkey

import (
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789ABCDEF"

// AppendPath appends the parts of an entity or a prefix in their form in keys: each byte 0x00 to 0x25 as %XX, the parts
// joined by '#', which is less than every byte that remains in a part. So paths sort as the tuples of their parts do,
// and no two lists of parts have the same path.
func AppendPath(dst []byte, parts ...string) []byte {
	for i, part := range parts {
		if i > 0 {
			dst = append(dst, delim)
		}
		for j := range len(part) {
			if c := part[j]; c <= lastEsc {
				dst = append(dst, escape, hexDigits[c>>4], hexDigits[c&15])
			} else {
				dst = append(dst, c)
			}
		}
	}
	return dst
}

// Path returns the path of parts. It allocates only the path, and nothing if there is one part without bytes to escape.
func Path(parts ...string) string {
	if len(parts) == 1 && needsNoEscape(parts[0]) {
		return parts[0]
	}
	n := len(parts)
	for _, part := range parts {
		n += len(part)
		for i := range len(part) {
			if part[i] <= lastEsc {
				n += 2
			}
		}
	}
	var b [128]byte
	if n <= len(b) {
		return string(AppendPath(b[:0], parts...))
	}
	return string(AppendPath(make([]byte, 0, n), parts...))
}

func needsNoEscape(part string) bool {
	for i := range len(part) {
		if part[i] <= lastEsc {
			return false
		}
	}
	return true
}

// Parts returns the parts of a path from Path or Split.
func Parts(path string) []string {
	if path == "" {
		return nil
	}
	parts := make([]string, 0, CountParts(path))
	for part := range strings.SplitSeq(path, "#") {
		parts = append(parts, unescape(part))
	}
	return parts
}

// unescape reverses AppendPath's escaping of one part. It keeps text that is not an escape.
func unescape(part string) string {
	if strings.IndexByte(part, escape) < 0 {
		return part
	}
	b := make([]byte, 0, len(part))
	for i := 0; i < len(part); i++ {
		if c, ok := escaped(part[i:]); ok {
			b = append(b, c)
			i += 2
			continue
		}
		b = append(b, part[i])
	}
	return string(b)
}

// escaped returns the byte of the escape at the start of s, if it is one that AppendPath produces.
func escaped(s string) (byte, bool) {
	if len(s) < 3 || s[0] != escape {
		return 0, false
	}
	hi, lo := strings.IndexByte(hexDigits, s[1]), strings.IndexByte(hexDigits, s[2])
	if hi < 0 || lo < 0 || hi<<4|lo > lastEsc {
		return 0, false
	}
	return byte(hi<<4 | lo), true
}

// canonical reports whether AppendPath produces path from non-empty, valid parts.
func canonical(path string) bool {
	if !utf8.ValidString(path) {
		return false
	}
	start := true
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == delim:
			if start {
				return false
			}
			start = true
			continue
		case c == escape:
			if _, ok := escaped(path[i:]); !ok {
				return false
			}
			i += 2
		case c < lastEsc:
			return false
		}
		start = false
	}
	return !start
}

// FirstParts returns the path of the first n parts of a path, or all of it if it has no more.
func FirstParts(path string, n int) string {
	for i := range len(path) {
		if path[i] == delim {
			if n--; n == 0 {
				return path[:i]
			}
		}
	}
	return path
}

// CountParts returns the number of parts of a path; the empty path has none.
func CountParts(path string) int {
	if path == "" {
		return 0
	}
	return strings.Count(path, "#") + 1
}
