package codec

import (
	"errors"

	"github.com/tidemark-go/tidemark/internal/jsonscan"
)

var (
	errLeftOverJSON = errors.New("bytes after the JSON value")
	errTooLarge     = errors.New("number is too large for a float64")
)

// lookupJSON returns the field of JSON text.
func lookupJSON(src []byte, name string) (Value, error) {
	s := jsonscan.Scanner{Src: src}
	var text []byte
	if s.Next() == '{' {
		text = fieldBelow(&s, name)
	} else if value := s.Value(); name == "" {
		text = value
	}
	switch ended := s.End(); {
	case s.Err != nil:
		return Value{}, s.Err
	case !ended:
		return Value{}, errLeftOverJSON
	case text == nil:
		return Value{}, nil
	}
	switch text[0] {
	case 'n':
		return Value{kind: KindNull}, nil
	case 't', 'f':
		return Bool(text[0] == 't'), nil
	case '"':
		return Str(jsonscan.Text{Quoted: text}.Decode()), nil
	case '[':
		list, err := decodeJSON(text)
		return ValueOf(list), err
	}
	v, ok := ParseNumber(string(text))
	if !ok {
		return Value{}, errTooLarge
	}
	return v, nil
}

// candidate is a field that may be the wanted one.
type candidate struct {
	names int    // how many bytes of the wanted name its own name is
	text  []byte // nil if it is an object
}

// fieldBelow passes an object, and returns the text of the field with a name; nil for none. Of fields with one name, the
// last one counts.
func fieldBelow(s *jsonscan.Scanner, name string) (text []byte) {
	var room [4]candidate
	candidates := room[:0]
	for more := s.Open('}'); more; more = s.More('}') {
		n := s.Name().Begins(name)
		switch c := s.Next(); {
		case n < 0:
			s.Value()
			continue
		case n == len(name) && c != '{':
			text = s.Value()
		case n < len(name) && c == '{':
			text = fieldBelow(s, name[n+1:])
		default:
			s.Value()
			text = nil
		}
		candidates = addCandidate(candidates, candidate{n, text})
	}
	return longest(candidates)
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

// longest returns the text of the candidate with the longest name, of those that have one.
func longest(all []candidate) (text []byte) {
	names := -1
	for _, c := range all {
		if c.text != nil && c.names > names {
			text, names = c.text, c.names
		}
	}
	return text
}
