// Package jsonscan reads JSON text without decoding it. It accepts what encoding/json accepts. Scanning
// allocates nothing.
package jsonscan

import "errors"

// deepest is how many arrays and objects may be within each other, as in encoding/json.
const deepest = 10_000

var (
	errSyntax = errors.New("not JSON")
	errDeep   = errors.New("more than 10,000 arrays and objects within each other")
)

// Scanner reads a text from a place on. After an error it is at the end.
type Scanner struct {
	Src   []byte
	At    int
	Err   error // the first one
	depth int
}

func (s *Scanner) fail(err error) {
	if s.Err == nil {
		s.Err = err
	}
	s.At = len(s.Src)
}

// Next passes spaces, and returns the byte after them, or 0 at the end.
func (s *Scanner) Next() byte {
	for s.At < len(s.Src) {
		if c := s.Src[s.At]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.At++
	}
	return 0
}

// End passes spaces, and reports whether the text ends there without an error.
func (s *Scanner) End() bool { return s.Next() == 0 && s.At == len(s.Src) && s.Err == nil }

// Value passes a value, and returns its text, or nil after an error.
func (s *Scanner) Value() []byte {
	c := s.Next()
	from := s.At
	switch c {
	case '{':
		for more := s.Open('}'); more; more = s.More('}') {
			s.Name()
			s.Value()
		}
	case '[':
		for more := s.Open(']'); more; more = s.More(']') {
			s.Value()
		}
	case '"':
		s.String()
	case 't':
		s.Literal("true")
	case 'f':
		s.Literal("false")
	case 'n':
		s.Literal("null")
	default:
		s.Number()
	}
	if s.Err != nil {
		return nil
	}
	return s.Src[from:s.At]
}

// Open passes the bracket of an object or an array, and reports whether it has a member or an element.
func (s *Scanner) Open(end byte) (more bool) {
	s.At++
	if s.depth++; s.depth > deepest {
		s.fail(errDeep)
	}
	if s.Next() != end {
		return s.Err == nil
	}
	s.At++
	s.depth--
	return false
}

// More passes the comma before the next member or element, and returns false if the object or the array ends.
func (s *Scanner) More(end byte) bool {
	switch s.Next() {
	case ',':
		s.At++
		return true
	case end:
		s.At++
		s.depth--
		return false
	}
	s.fail(errSyntax)
	return false
}

// Name passes the name of a member and the colon.
func (s *Scanner) Name() Text {
	s.Next()
	name := s.String()
	if s.Next() != ':' {
		s.fail(errSyntax)
		return noText
	}
	s.At++
	return name
}

// Literal passes a text that must come next.
func (s *Scanner) Literal(text string) {
	if len(s.Src)-s.At < len(text) || string(s.Src[s.At:s.At+len(text)]) != text {
		s.fail(errSyntax)
		return
	}
	s.At += len(text)
}

// Number passes a number.
func (s *Scanner) Number() {
	if s.peek() == '-' {
		s.At++
	}
	if s.peek() == '0' {
		s.At++
	} else {
		s.digits()
	}
	if s.peek() == '.' {
		s.At++
		s.digits()
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.At++
		if c := s.peek(); c == '+' || c == '-' {
			s.At++
		}
		s.digits()
	}
}

// peek returns the next byte, or 0 at the end.
func (s *Scanner) peek() byte {
	if s.At < len(s.Src) {
		return s.Src[s.At]
	}
	return 0
}

// digits passes at least one digit.
func (s *Scanner) digits() {
	from, to := s.At, s.At
	for to < len(s.Src) && s.Src[to]-'0' <= 9 {
		to++
	}
	if s.At = to; to == from {
		s.fail(errSyntax)
	}
}
