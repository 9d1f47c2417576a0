package rowkey

import "unicode/utf8"

const slash = '/'

// AppendText appends the text of a path for people and for other programs: its parts joined by '/'. Bytes that would be read as
// something else are %XX: '/', '%', control bytes, and bytes that are not UTF-8. So no two paths have one text, and every text is
// valid UTF-8.
func AppendText(dst []byte, path string) []byte {
	for i, part := range Parts(path) {
		if i > 0 {
			dst = append(dst, slash)
		}
		for len(part) > 0 {
			r, n := utf8.DecodeRuneInString(part)
			if c := part[0]; c < ' ' || c == 0x7f || c == slash || c == escape || r == utf8.RuneError && n == 1 {
				dst = append(dst, escape, hexDigits[c>>4], hexDigits[c&15])
			} else {
				dst = append(dst, part[:n]...)
			}
			part = part[n:]
		}
	}
	return dst
}

// Text returns what AppendText appends.
func Text(path string) string { return string(AppendText(nil, path)) }
