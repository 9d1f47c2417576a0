package jsonscan

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a string in a text.
type Text struct {
	Quoted []byte // with its quotes
	Plain  bool   // ASCII without escapes
}

// noText is what an error returns.
var noText = Text{Quoted: []byte(`""`)}

// String passes a string.
func (s *Scanner) String() Text {
	if s.peek() != '"' {
		s.fail(errSyntax)
		return noText
	}
	t := Text{Plain: true}
	for i := s.At + 1; i < len(s.Src); i++ {
		switch c := s.Src[i]; {
		case c > '\\' && c < utf8.RuneSelf: // most are letters
		case c == '"':
			t.Quoted = s.Src[s.At : i+1]
			s.At = i + 1
			return t
		case c == '\\':
			t.Plain = false
			n := escape(s.Src[i+1:])
			if n == 0 {
				s.fail(errSyntax)
				return noText
			}
			i += n
		case c < ' ':
			s.fail(errSyntax)
			return noText
		case c >= utf8.RuneSelf:
			t.Plain = false
		}
	}
	s.fail(errSyntax)
	return noText
}

// escape returns the length of what follows a backslash, or 0 if it does not belong there.
func escape(text []byte) int {
	if len(text) == 0 {
		return 0
	}
	switch text[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if _, ok := hex4(text[1:]); ok {
			return 5
		}
	}
	return 0
}

// Inside returns the text between the quotes.
func (t Text) Inside() []byte { return t.Quoted[1 : len(t.Quoted)-1] }

// Verbatim reports whether the text between the quotes is the string, without escapes.
func (t Text) Verbatim() bool {
	return t.Plain || bytes.IndexByte(t.Quoted, '\\') < 0 && utf8.Valid(t.Quoted)
}

// Decode returns the string, with U+FFFD for what is not UTF-8.
func (t Text) Decode() string {
	if t.Verbatim() {
		return string(t.Inside())
	}
	var text string                     // here, as it escapes to the heap
	_ = json.Unmarshal(t.Quoted, &text) // the scanner has checked it
	return text
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

// Begins returns how many bytes of a name joined by dots the string is: the whole name, or the part before a dot. It
// returns -1 if the string is neither. As in encoding/json, U+FFFD stands for what is not UTF-8, and for half of a
// surrogate pair.
func (t Text) Begins(name string) (n int) {
	text := t.Inside()
	if t.Plain {
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
