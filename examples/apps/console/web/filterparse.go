package web

import (
	"strings"
	"time"
	"unicode"

	"github.com/tidemark-go/tidemark/codec"
)

// The most bytes of a filter, and the most comparisons, so that no filter costs much.
const (
	maxFilter  = 1_000
	maxClauses = 20
)

// filterParser reads a filter. The first mistake ends it.
type filterParser struct {
	keys  []string
	after time.Duration // what "silent" alone means
	all   []filterToken // what is not read yet
	n     int           // comparisons
	depth int
	err   error
}

// filterToken is a word, an operator or a parenthesis. Quote is what was around it, or 0.
type filterToken struct {
	text  string
	quote rune
}

// parseFilter reads the filter of entities with these key fields. The empty text is nil, which matches all.
func parseFilter(text string, keys []string, after time.Duration) (*clause, error) {
	if len(text) > maxFilter {
		return nil, refused("the filter", shown(text), "at most 1,000 bytes")
	}
	p := &filterParser{keys: keys, after: after}
	if p.all, p.err = filterTokens(text); p.err != nil || len(p.all) == 0 {
		return nil, p.err
	}
	c := p.any()
	if p.err == nil && len(p.all) > 0 {
		p.err = refusal(p.all[0].text, "want and, or, or the end before it")
	}
	return &c, p.err
}

const operators = "<>=!~"

func filterTokens(text string) (all []filterToken, err error) {
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return all, nil
		}
		first, n := rune(text[0]), 1
		switch {
		case strings.ContainsRune("'\"`", first):
			end := strings.IndexRune(text[1:], first)
			if end < 0 {
				return nil, refusal(text, "the second %c is missing", first)
			}
			all, text = append(all, filterToken{text[1 : 1+end], first}), text[end+2:]
			continue
		case strings.ContainsRune(operators, first):
			n = len(text) - len(strings.TrimLeft(text, operators))
		case first != '(' && first != ')':
			n = strings.IndexFunc(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("'\"`()"+operators, c) })
		}
		if n < 0 {
			n = len(text)
		}
		all, text = append(all, filterToken{text: text[:n]}), text[n:]
	}
}

// next takes a token if it is one of these words.
func (p *filterParser) next(words ...string) (string, bool) {
	if len(p.all) > 0 && p.all[0].quote == 0 {
		for _, word := range words {
			if strings.EqualFold(p.all[0].text, word) {
				p.all = p.all[1:]
				return word, true
			}
		}
	}
	return "", false
}

func (p *filterParser) fail(part, format string, args ...any) clause {
	if p.err == nil {
		p.err = refusal(part, format, args...)
	}
	p.all = nil
	return clause{}
}

func (p *filterParser) any() clause {
	all := p.joined("or", p.both)
	if len(all) == 1 {
		return all[0]
	}
	return clause{Any: all}
}

func (p *filterParser) both() clause {
	all := p.joined("and", p.one)
	if len(all) == 1 {
		return all[0]
	}
	return clause{All: all}
}

func (p *filterParser) joined(word string, part func() clause) []clause {
	all := []clause{part()}
	for {
		if _, ok := p.next(word); !ok {
			return all
		}
		all = append(all, part())
	}
}

func (p *filterParser) one() clause {
	if p.n, p.depth = p.n+1, p.depth+1; p.n > maxClauses || p.depth > maxClauses {
		return p.fail("its end", "it has more than %d parts", maxClauses)
	}
	defer func() { p.depth-- }()
	if _, ok := p.next("not"); ok {
		c := p.one()
		return clause{Not: &c}
	}
	if _, ok := p.next("("); ok {
		c := p.any()
		if _, ok := p.next(")"); !ok && p.err == nil {
			return p.fail("its end", "a ) is missing")
		}
		return c
	}
	if len(p.all) == 0 {
		return p.fail("its end", "a comparison is missing, as in battery_pct < 20")
	}
	name := p.all[0]
	p.all = p.all[1:]
	if name.quote != '`' && (name.quote != 0 || name.text == ")" || strings.ContainsAny(name.text[:1], operators) || strings.EqualFold(name.text, "and") || strings.EqualFold(name.text, "or")) {
		return p.fail(name.text, "want the name of a field, as in battery_pct < 20")
	}
	c := p.named(name)
	if c.Of == "silent" {
		return p.silence(c)
	}
	return p.comparison(c, name.text)
}

// named returns what a name means.
func (p *filterParser) named(name filterToken) clause {
	if name.quote == 0 {
		for i, key := range p.keys {
			if key == name.text {
				return clause{Of: "key", Key: i}
			}
		}
		if name.text == "name" || name.text == "silent" {
			return clause{Of: name.text}
		}
	}
	field, err := parseField(name.text)
	if err != nil && p.err == nil {
		p.err = err
	}
	_, now := p.next("now")
	return clause{Of: "field", Field: field, Now: now}
}

var comparisons = []string{"<", "<=", ">", ">=", "=", "!=", "~"}

func (p *filterParser) comparison(c clause, name string) clause {
	op, ok := p.next(append(comparisons, "==", "contains")...)
	switch {
	case !ok && len(p.all) > 0 && strings.ContainsAny(p.all[0].text[:min(1, len(p.all[0].text))], operators):
		return p.fail(p.all[0].text, "want one of %s", strings.Join(comparisons, " "))
	case !ok && c.Of == "name":
		return p.fail(name, "want a comparison after it, as in name ~ van")
	case !ok:
		return c
	}
	c.Op = op
	switch op {
	case "==":
		c.Op = "="
	case "contains":
		c.Op = "~"
	}
	value, ok := p.value()
	if !ok {
		return p.fail(name+" "+op, "a value is missing after it")
	}
	c.Text = value.text
	if n, isNumber := codec.ParseNumber(value.text); isNumber && value.quote == 0 {
		x, _ := n.Number()
		c.Number = &x
	} else if strings.ContainsAny(c.Op, "<>") {
		return p.fail(value.text, "want a number after %s", c.Op)
	}
	if c.Of == "name" && strings.ContainsAny(c.Op, "<>") {
		return p.fail(name+" "+op, "a name is compared by =, != or ~")
	}
	return c
}

// value takes a value. A word such as and is one only in quotes.
func (p *filterParser) value() (value filterToken, ok bool) {
	if len(p.all) == 0 {
		return value, false
	}
	value = p.all[0]
	for _, word := range []string{"and", "or", "not", "(", ")"} {
		if value.quote == 0 && strings.EqualFold(value.text, word) {
			return value, false
		}
	}
	p.all = p.all[1:]
	return value, true
}

// silence reads the rest of "silent", "silent for 10 min" or "silent > 10m".
func (p *filterParser) silence(c clause) clause {
	op, ok := p.next("<", "<=", ">", ">=", "for")
	if c.Op = op; op == "for" || !ok {
		c.Op = ">"
	}
	after := p.after
	if ok {
		value, _ := p.value()
		text := value.text
		if text != "" && len(p.all) > 0 && strings.Trim(text, "0123456789.") == "" { // the unit is the next word
			text += p.all[0].text
			p.all = p.all[1:]
		}
		if after, ok = length(text); !ok {
			return p.fail(strings.TrimSpace("silent "+op+" "+value.text), "want a length of time after %s, as in silent %s 10m", op, op)
		}
	} else if len(p.all) > 0 && strings.ContainsAny(p.all[0].text[:min(1, len(p.all[0].text))], operators) {
		return p.fail(p.all[0].text, "silent is compared by <, <=, > or >=")
	}
	ms := inMillis(after)
	c.Number = &ms
	return c
}
