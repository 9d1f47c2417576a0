package rowfilter

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// pattern is an RE2 expression over bytes that must match the whole text. If the expression matches a short list of
// words, a prefix, or everything, matching only compares bytes.
type pattern struct {
	// words are all matching texts, if listed is set.
	words  [][]byte
	listed bool
	// prefix is set if prefixed is: any text may follow it. With oneLine, the rest must not contain a newline.
	prefix   []byte
	prefixed bool
	oneLine  bool

	re  *regexp.Regexp
	buf []byte
}

// compilePattern parses expr as RE2 does in Latin-1 mode: each byte of the expression and of the text is one character.
func compilePattern(field string, expr []byte) (*pattern, error) {
	text := latin1Expr(expr)
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, invalid(field, "%v", err)
	}
	tree = unanchor(tree)
	p := &pattern{}
	if p.words, p.listed = wordsOf(tree); p.listed {
		return p, nil
	}
	if p.prefix, p.oneLine, p.prefixed = prefixOf(tree); p.prefixed {
		return p, nil
	}
	if p.re, err = regexp.Compile(`\A(?:` + text + `)\z`); err != nil {
		return nil, invalid(field, "%v", err)
	}
	return p, nil
}

func (p *pattern) match(b []byte) bool {
	switch {
	case p.listed:
		for _, w := range p.words {
			if bytes.Equal(w, b) {
				return true
			}
		}
		return false
	case p.prefixed:
		return bytes.HasPrefix(b, p.prefix) && (!p.oneLine || bytes.IndexByte(b[len(p.prefix):], '\n') < 0)
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			p.buf = appendLatin1(p.buf[:0], b...)
			return p.re.Match(p.buf)
		}
	}
	return p.re.Match(b)
}

// appendLatin1 appends each byte as the Unicode character with its number, in UTF-8.
func appendLatin1(dst []byte, b ...byte) []byte {
	for _, c := range b {
		if c < utf8.RuneSelf {
			dst = append(dst, c)
		} else {
			dst = append(dst, 0xC0|c>>6, 0x80|c&0x3F)
		}
	}
	return dst
}

// latin1Expr rewrites an expression over bytes as one over the characters of appendLatin1. \C (any byte) becomes any
// character. Text between \Q and \E becomes escaped text, because \C has no meaning inside.
func latin1Expr(expr []byte) string {
	out := make([]byte, 0, len(expr)+16)
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\' && i+1 < len(expr):
			i++
			switch expr[i] {
			case 'C':
				out = append(out, `(?s:.)`...)
			case 'Q':
				rest := expr[i+1:]
				n := bytes.Index(rest, []byte(`\E`))
				if n < 0 {
					n, i = len(rest), len(expr)
				} else {
					i += n + 2
				}
				out = append(out, regexp.QuoteMeta(string(appendLatin1(nil, rest[:n]...)))...)
			default:
				out = appendLatin1(append(out, '\\'), expr[i])
			}
		case c == '[':
			n := classLen(expr[i:])
			out = appendLatin1(out, expr[i:i+n]...)
			i += n - 1
		default:
			out = appendLatin1(out, c)
		}
	}
	return string(out)
}

// classLen returns the length of the character class at the start of expr, or of expr if the class does not end.
func classLen(expr []byte) int {
	i := 1
	if i < len(expr) && expr[i] == '^' {
		i++
	}
	for first := true; i < len(expr); first = false {
		switch {
		case expr[i] == ']' && !first:
			return i + 1
		case expr[i] == '\\':
			i += 2
		case bytes.HasPrefix(expr[i:], []byte("[:")):
			if n := bytes.Index(expr[i+2:], []byte(":]")); n >= 0 {
				i += n + 4
			} else {
				i++
			}
		default:
			i++
		}
	}
	return len(expr)
}

// unanchor removes the anchors that a match of the whole text implies.
func unanchor(re *syntax.Regexp) *syntax.Regexp {
	if re.Op != syntax.OpConcat {
		return re
	}
	subs := re.Sub
	for len(subs) > 0 && subs[0].Op == syntax.OpBeginText {
		subs = subs[1:]
	}
	for len(subs) > 0 && subs[len(subs)-1].Op == syntax.OpEndText {
		subs = subs[:len(subs)-1]
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Flags: re.Flags, Sub: subs}
}

// maxWords is the largest number of words that a pattern lists.
const maxWords = 16

// wordsOf returns all texts that re matches, if there are few.
func wordsOf(re *syntax.Regexp) (words [][]byte, ok bool) {
	switch re.Op {
	case syntax.OpNoMatch:
		return nil, true
	case syntax.OpEmptyMatch:
		return [][]byte{{}}, true
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return nil, false
		}
		word := make([]byte, 0, len(re.Rune))
		for _, r := range re.Rune {
			if r > 0xFF {
				return nil, true
			}
			word = append(word, byte(r))
		}
		return [][]byte{word}, true
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= min(re.Rune[i+1], 0xFF); r++ {
				if words = append(words, []byte{byte(r)}); len(words) > maxWords {
					return nil, false
				}
			}
		}
		return words, true
	case syntax.OpCapture:
		return wordsOf(re.Sub[0])
	case syntax.OpQuest:
		if words, ok = wordsOf(re.Sub[0]); !ok {
			return nil, false
		}
		return append(slices.Clone(words), []byte{}), true
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			more, ok := wordsOf(sub)
			if !ok || len(words)+len(more) > maxWords {
				return nil, false
			}
			words = append(words, more...)
		}
		return words, true
	case syntax.OpConcat:
		words = [][]byte{{}}
		for _, sub := range re.Sub {
			tails, ok := wordsOf(sub)
			if !ok || len(words)*len(tails) > maxWords {
				return nil, false
			}
			var next [][]byte
			for _, w := range words {
				for _, t := range tails {
					next = append(next, slices.Concat(w, t))
				}
			}
			words = next
		}
		return words, true
	}
	return nil, false
}

// prefixOf reports whether re is a word followed by anything.
func prefixOf(re *syntax.Regexp) (prefix []byte, oneLine, ok bool) {
	tail := re
	if re.Op == syntax.OpConcat {
		if len(re.Sub) == 0 {
			return nil, false, false
		}
		tail = re.Sub[len(re.Sub)-1]
		words, ok := wordsOf(&syntax.Regexp{Op: syntax.OpConcat, Sub: re.Sub[:len(re.Sub)-1]})
		if !ok || len(words) != 1 {
			return nil, false, false
		}
		prefix = words[0]
	}
	if tail.Op != syntax.OpStar {
		return nil, false, false
	}
	switch tail.Sub[0].Op {
	case syntax.OpAnyChar:
		return prefix, false, true
	case syntax.OpAnyCharNotNL:
		return prefix, true, true
	}
	return nil, false, false
}
