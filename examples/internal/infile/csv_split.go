package infile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// quotes is where a text of CSV is.
type quotes uint8

const (
	atCell quotes = iota // at its beginning, where a quote opens a quoted field
	inCell
	inQuotes
	afterQuote // which ends the field, unless another one follows
)

// scan returns where the text is after some more of it.
func (q quotes) scan(text []byte, comma byte) quotes {
	if q != inQuotes && q != afterQuote && bytes.IndexByte(text, '"') < 0 {
		if text[len(text)-1] == comma {
			return atCell
		}
		return inCell
	}
	for _, b := range text {
		switch {
		case q == inQuotes && b == '"':
			q = afterQuote
		case q == inQuotes:
		case b == '"' && q != inCell:
			q = inQuotes
		case b == comma:
			q = atCell
		default:
			q = inCell
		}
	}
	return q
}

// split returns the cells of a record. They are valid until the next call.
func (c *CSV) split(text string) ([]string, error) {
	c.cells = c.cells[:0]
	for {
		quoted, isQuoted := strings.CutPrefix(text, `"`)
		if !isQuoted {
			cell, rest, more := strings.Cut(text, string(c.opts.Comma))
			c.cells = append(c.cells, cell)
			if !more {
				return c.cells, nil
			}
			text = rest
			continue
		}
		cell, rest, ok := unquote(quoted)
		switch {
		case !ok:
			return nil, errors.New("a quoted field does not end")
		case rest != "" && rest[0] != c.opts.Comma:
			return nil, fmt.Errorf("after the quoted field %.64q comes %.20q; want a separator", cell, rest)
		}
		c.cells = append(c.cells, cell)
		if rest == "" {
			return c.cells, nil
		}
		text = rest[1:]
	}
}

// unquote returns the text before a closing quote, and what is after it. Two quotes are one of the text.
func unquote(text string) (cell, rest string, ok bool) {
	for end := 0; ; end += 2 {
		i := strings.IndexByte(text[end:], '"')
		if i < 0 {
			return "", "", false
		}
		if end += i; !strings.HasPrefix(text[end+1:], `"`) {
			return strings.ReplaceAll(text[:end], `""`, `"`), text[end+1:], true
		}
	}
}
