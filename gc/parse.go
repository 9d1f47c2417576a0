package gc

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// maxText is the longest text that Parse reads, several times the text of the largest rule that the service accepts.
const maxText = 4096

// Parse reads a policy in the syntax of Google's cbt tool:
//
//	policy   = "never" | expr .
//	expr     = term { ( "&&" | "and" | "||" | "or" ) term } .
//	term     = "maxage" "=" age | "maxversions" "=" number | "(" expr ")" .
//	age      = number ( "d" | "h" | "m" | "s" | "ms" | "us" ) .
//
// Spaces between tokens do not matter. A day is 24 hours. As in cbt, && and || have the same precedence and associate
// to the left: a || b && c means (a || b) && c. [Policy.String] writes parentheses wherever they matter; you should,
// too.
//
// The error names the first byte that is wrong, or the rule that [Policy.Validate] rejects.
// Text over 4,096 bytes is rejected without parsing.
func Parse(text string) (Policy, error) {
	if len(text) > maxText {
		return Policy{}, invalid.New(invalid.ErrPolicy, "policy text", invalid.Quote(text), fmt.Sprintf("at most %d bytes", maxText))
	}
	if strings.TrimSpace(text) == "never" {
		return Never(), nil
	}
	s := scanner{text: text}
	s.next()
	p, err := s.expr(0)
	if err != nil {
		return Policy{}, err
	}
	if s.token != "" {
		return Policy{}, s.unexpected("&&, || or the end")
	}
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// A scanner reads text one token ahead.
type scanner struct {
	text  string
	token string // "" at the end
	start int    // where token starts
	end   int    // where the rest of the text starts
}

// next reads the next token: a word of letters and digits, a doubled & or |, or any other single character.
func (s *scanner) next() {
	rest := strings.TrimLeftFunc(s.text[s.end:], unicode.IsSpace)
	s.start = len(s.text) - len(rest)
	n := len(rest) - len(strings.TrimLeftFunc(rest, isWord))
	switch {
	case n > 0 || rest == "":
	case strings.HasPrefix(rest, "&&"), strings.HasPrefix(rest, "||"):
		n = 2
	default:
		_, n = utf8.DecodeRuneInString(rest)
	}
	s.token, s.end = rest[:n], s.start+n
}

func isWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// unexpected returns the error for a token, with the accepted ones.
func (s *scanner) unexpected(want string) error {
	got := "the end"
	if s.token != "" {
		got = invalid.Quote(s.token)
	}
	return invalid.New(invalid.ErrPolicy, fmt.Sprintf("policy text at byte %d", s.start), got, want)
}

func (s *scanner) expr(depth int) (Policy, error) {
	p, err := s.term(depth)
	if err != nil {
		return Policy{}, err
	}
	for {
		var join func(...Policy) Policy
		switch s.token {
		case "&&", "and":
			join = All
		case "||", "or":
			join = Any
		default:
			return p, nil
		}
		s.next()
		q, err := s.term(depth)
		if err != nil {
			return Policy{}, err
		}
		p = join(p, q)
	}
}

func (s *scanner) term(depth int) (Policy, error) {
	switch s.token {
	case "maxage", "maxversions":
		return s.rule(s.token)
	case "(":
		if depth == maxNesting {
			return Policy{}, s.unexpected(fmt.Sprintf("at most %d levels of parentheses", maxNesting))
		}
		s.next()
		p, err := s.expr(depth + 1)
		if err != nil {
			return Policy{}, err
		}
		if s.token != ")" {
			return Policy{}, s.unexpected("&&, || or )")
		}
		s.next()
		return p, nil
	case "never":
		return Policy{}, s.unexpected("maxage=, maxversions= or (, as never stands alone")
	default:
		return Policy{}, s.unexpected("maxage=, maxversions= or (")
	}
}

// rule parses the rest of "maxage=30d" or "maxversions=2".
func (s *scanner) rule(name string) (Policy, error) {
	s.next()
	if s.token != "=" {
		return Policy{}, s.unexpected("= after " + name)
	}
	s.next()
	var p Policy
	if name == "maxage" {
		age, ok := parseAge(s.token)
		if !ok {
			return Policy{}, s.unexpected("a whole number with a unit (d, h, m, s, ms or us), less than 106752d in all")
		}
		p = MaxAge(age)
	} else {
		n, err := strconv.ParseUint(s.token, 10, 31)
		if err != nil {
			return Policy{}, s.unexpected("a whole number from 1 to 2147483647")
		}
		p = MaxVersions(int(n))
	}
	if p.bad != nil {
		return Policy{}, p.bad
	}
	s.next()
	return p, nil
}
