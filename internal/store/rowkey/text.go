package rowkey

import "unicode/utf8"

const slash = '/'

// AppendText appends a path as text for people and other programs: its parts joined by '/'. It writes ambiguous bytes
// as %XX: '/', '%', control bytes, and bytes that are not UTF-8. So no two paths have the same text, and every text is
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

// Text returns the text that AppendText appends.
func Text(path string) string { return string(AppendText(nil, path)) }
