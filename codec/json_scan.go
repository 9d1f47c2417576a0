package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

// deepest is how many arrays and objects may be within each other, as in encoding/json.
const deepest = 10_000

var (
	errSyntax       = errors.New("not JSON")
	errDeep         = errors.New("more than 10,000 arrays and objects within each other")
	errLeftOverJSON = errors.New("bytes after the JSON value")
	errTooLarge     = errors.New("number is too large for a float64")
)

// jsonScanner reads JSON text without decoding it. It accepts what encoding/json accepts.
type jsonScanner struct {
	src   []byte
	at    int
	depth int
}

// wanted says what value looks for.
type wanted uint8

const (
	nothing wanted = iota
	itself         // the value, unless it is an object
	below          // a field of the object
)

// value reads a value. It returns where the value that is wanted is; nowhere if there is none. With below, that is the
// field with a name.
func (s *jsonScanner) value(name string, want wanted) (found span, err error) {
	s.space()
	if s.at == len(s.src) {
		return span{}, errSyntax
	}
	from := s.at
	switch c := s.src[s.at]; c {
	case '{':
		return s.object(name, want == below)
	case '[':
		err = s.array()
	case '"':
		_, err = s.string()
	case 't':
		err = s.literal("true")
	case 'f':
		err = s.literal("false")
	case 'n':
		err = s.literal("null")
	default:
		err = s.number()
	}
	if err == nil && want == itself {
		found = span{from, s.at}
	}
	return found, err
}

// candidate is a field that may be the wanted one.
type candidate struct {
	names int // how many bytes of the wanted name its own name is
	at    span
}

// object reads an object. Of fields with one name, the last one counts.
func (s *jsonScanner) object(name string, wanted bool) (found span, err error) {
	if err := s.enter(); err != nil {
		return span{}, err
	}
	if s.next('}') {
		return span{}, nil
	}
	var room [4]candidate
	candidates := room[:0]
	for {
		s.space()
		key, err := s.string()
		if err != nil {
			return span{}, err
		}
		if !s.next(':') {
			return span{}, errSyntax
		}
		n := -1
		if wanted {
			n = key.begins(s.src, name)
		}
		switch {
		case n < 0:
			_, err = s.value("", nothing)
		case n == len(name):
			found, err = s.value("", itself)
		default:
			found, err = s.value(name[n+1:], below)
		}
		if err != nil {
			return span{}, err
		}
		if n >= 0 {
			candidates = addCandidate(candidates, candidate{n, found})
		}
		switch {
		case s.next('}'):
			return longest(candidates), nil
		case !s.next(','):
			return span{}, errSyntax
		}
	}
}

// addCandidate adds a candidate, or replaces the one of the same name.
func addCandidate(all []candidate, c candidate) []candidate {
	for i := range all {
		if all[i].names == c.names {
			all[i] = c
			return all
		}
	}
	return append(all, c)
}

// longest returns where the candidate with the longest name is, of those that are somewhere.
func longest(all []candidate) (found span) {
	names := -1
	for _, c := range all {
		if c.at.to > 0 && c.names > names {
			found, names = c.at, c.names
		}
	}
	return found
}

func (s *jsonScanner) array() error {
	if err := s.enter(); err != nil {
		return err
	}
	if s.next(']') {
		return nil
	}
	for {
		if _, err := s.value("", nothing); err != nil {
			return err
		}
		switch {
		case s.next(']'):
			return nil
		case !s.next(','):
			return errSyntax
		}
	}
}

// enter passes the bracket of an object or an array.
func (s *jsonScanner) enter() error {
	s.at++
	if s.depth++; s.depth > deepest {
		return errDeep
	}
	return nil
}

// next passes c, if it is the next byte behind spaces. A closing bracket ends an object or an array.
func (s *jsonScanner) next(c byte) bool {
	s.space()
	if s.at == len(s.src) || s.src[s.at] != c {
		return false
	}
	s.at++
	if c == '}' || c == ']' {
		s.depth--
	}
	return true
}

// ended reports whether only spaces are left.
func (s *jsonScanner) ended() bool {
	s.space()
	return s.at == len(s.src)
}

func (s *jsonScanner) space() {
	for s.at < len(s.src) {
		switch s.src[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

func (s *jsonScanner) literal(text string) error {
	if len(s.src)-s.at < len(text) || string(s.src[s.at:s.at+len(text)]) != text {
		return errSyntax
	}
	s.at += len(text)
	return nil
}

func (s *jsonScanner) number() error {
	if s.peek() == '-' {
		s.at++
	}
	switch c := s.peek(); {
	case c == '0':
		s.at++
	case !s.digits():
		return errSyntax
	}
	if s.peek() == '.' {
		s.at++
		if !s.digits() {
			return errSyntax
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return errSyntax
		}
	}
	return nil
}

// peek returns the next byte, or 0 at the end.
func (s *jsonScanner) peek() byte {
	if s.at < len(s.src) {
		return s.src[s.at]
	}
	return 0
}

// digits passes digits, and reports whether there were any.
func (s *jsonScanner) digits() bool {
	from := s.at
	for s.at < len(s.src) && s.src[s.at]-'0' <= 9 {
		s.at++
	}
	return s.at > from
}

// jsonString is the inside of a string.
type jsonString struct {
	span
	plain bool // ASCII without escapes
}

func (s *jsonScanner) string() (text jsonString, err error) {
	if s.peek() != '"' {
		return text, errSyntax
	}
	s.at++
	text.from, text.plain = s.at, true
	for s.at < len(s.src) {
		c := s.src[s.at]
		s.at++
		switch {
		case c == '"':
			text.to = s.at - 1
			return text, nil
		case c == '\\':
			text.plain = false
			if err := s.escape(); err != nil {
				return text, err
			}
		case c < ' ':
			return text, errSyntax
		case c >= utf8.RuneSelf:
			text.plain = false
		}
	}
	return text, errSyntax
}

// escape passes what follows a backslash.
func (s *jsonScanner) escape() error {
	c := s.peek()
	s.at++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		if _, ok := hex4(s.src[s.at:]); ok {
			s.at += 4
			return nil
		}
	}
	return errSyntax
}

// decode returns the text, with U+FFFD for what is not UTF-8. The string was read without an error.
func (t jsonString) decode(src []byte) (string, error) {
	inside := src[t.from:t.to]
	if t.plain || bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside), nil
	}
	var text string
	err := json.Unmarshal(src[t.from-1:t.to+1], &text)
	return text, err
}

// hex4 returns the number of the four hexadecimal digits at the start of text.
func hex4(text []byte) (r rune, ok bool) {
	if len(text) < 4 {
		return 0, false
	}
	for _, c := range text[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// begins returns how many bytes of a name joined by dots the string is: the whole name, or the part before a dot. It
// returns -1 if the string is neither. The string was read without an error. As in encoding/json, U+FFFD stands for
// what is not UTF-8, and for half of a surrogate pair.
func (t jsonString) begins(src []byte, name string) (n int) {
	text := src[t.from:t.to]
	if t.plain {
		if n = len(text); n > len(name) || string(text) != name[:n] {
			return -1
		}
		text = nil
	}
	for len(text) > 0 {
		var r rune
		r, text = firstRune(text)
		want, size := utf8.DecodeRuneInString(name[n:])
		if size == 0 || r != want || want == utf8.RuneError && size == 1 {
			return -1
		}
		n += size
	}
	if n < len(name) && name[n] != '.' {
		return -1
	}
	return n
}

// firstRune returns the first rune of the inside of a string, and the rest.
func firstRune(text []byte) (rune, []byte) {
	if text[0] != '\\' {
		r, n := utf8.DecodeRune(text)
		return r, text[n:]
	}
	switch c := text[1]; c {
	case 'b':
		return '\b', text[2:]
	case 'f':
		return '\f', text[2:]
	case 'n':
		return '\n', text[2:]
	case 'r':
		return '\r', text[2:]
	case 't':
		return '\t', text[2:]
	case 'u':
	default:
		return rune(c), text[2:]
	}
	r, _ := hex4(text[2:])
	text = text[6:]
	if !utf16.IsSurrogate(r) {
		return r, text
	}
	if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
		low, _ := hex4(text[2:])
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, text[6:]
		}
	}
	return utf8.RuneError, text
}
