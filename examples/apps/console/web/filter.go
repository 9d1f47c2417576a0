package web

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/codec"
)

// A filter chooses entities by their newest values:
//
//	filter     = all { "or" all }
//	all        = one { "and" one }
//	one        = "not" one | "(" filter ")" | name [ "now" ] [ comparison value ]
//	comparison = "<" | "<=" | ">" | ">=" | "=" | "!=" | "~"
//
// A name is a key field, a field of the payload, "name" for the whole key, or "silent" for the age of the newest point,
// which is compared with a length of time. Backquotes around a name make it a field of the payload, and quotes around a
// value make it text. A field alone is true if it has a value other than false, 0 and empty text. A comparison with a
// field that is missing is false. With "now", the newest point itself has to have the field.

// clause is a part of a filter. Exactly one of All, Any, Not and Of is set.
type clause struct {
	All []clause `json:"all,omitempty"`
	Any []clause `json:"any,omitempty"`
	Not *clause  `json:"not,omitempty"`
	// Of is what is compared: "field", "key" for the key field of the number Key, "name" or "silent".
	Of    string `json:"of,omitempty"`
	Field string `json:"field,omitempty"`
	Key   int    `json:"key,omitempty"`
	Now   bool   `json:"now,omitempty"` // values of older points do not count
	// Op is a comparison, or empty for a field alone.
	Op   string `json:"op,omitempty"`
	Text string `json:"text,omitempty"`
	// Number is what a number is compared with, or the milliseconds of a silence. It is nil if Text is no number.
	Number *float64 `json:"number,omitempty"`
}

// candidate is what a filter sees of an entity.
type candidate struct {
	parts  []string
	value  codec.Record
	silent float64 // milliseconds since its newest point
	older  func(field string) bool
}

// fields adds the fields of payloads that a filter names.
func (c *clause) fields(names []string) []string {
	if c == nil {
		return names
	}
	for _, part := range slices.Concat(c.All, c.Any) {
		names = part.fields(names)
	}
	if c.Not != nil {
		return c.Not.fields(names)
	}
	if c.Of == "field" && !slices.Contains(names, c.Field) {
		names = append(names, c.Field)
	}
	return names
}

func (c *clause) matches(e *candidate) bool {
	switch {
	case c == nil:
		return true
	case c.All != nil:
		return !slices.ContainsFunc(c.All, func(part clause) bool { return !part.matches(e) })
	case c.Any != nil:
		return slices.ContainsFunc(c.Any, func(part clause) bool { return part.matches(e) })
	case c.Not != nil:
		return !c.Not.matches(e)
	}
	switch c.Of {
	case "silent":
		return compares(c.Op, e.silent, *c.Number)
	case "name":
		return c.matchesText(strings.Join(e.parts, "/"))
	case "key":
		return c.Key < len(e.parts) && c.matchesValue(codec.Str(e.parts[c.Key]))
	}
	v, ok := e.value.Lookup(c.Field)
	return ok && !(c.Now && e.older(c.Field)) && c.matchesValue(v)
}

func (c *clause) matchesValue(v codec.Value) bool {
	x, isNumber := v.AsNumber().Number()
	text, isText := v.Text()
	switch {
	case c.Op == "":
		b, isBool := v.Bool()
		return v.Kind() != codec.KindNull && (!isBool || b) && (!isNumber || x != 0) && (!isText || text != "" && text != "false")
	case c.Op != "~" && c.Number != nil && isNumber:
		return compares(c.Op, x, *c.Number)
	}
	return isText && c.matchesText(text)
}

func (c *clause) matchesText(text string) bool {
	return c.Op == "=" && text == c.Text || c.Op == "!=" && text != c.Text || c.Op == "~" && strings.Contains(strings.ToLower(text), strings.ToLower(c.Text))
}

func compares(op string, x, y float64) bool {
	return x < y && op[0] == '<' || x > y && op[0] == '>' || x == y && op[len(op)-1] == '=' && op != "!=" || x != y && op == "!="
}

// units are those of a length of time, in all the ways in which people write them.
var units = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second, "m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour,
}

// length reads a length of time such as 10m or 2.5 hours.
func length(text string) (time.Duration, bool) {
	at := strings.IndexFunc(text, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
	if at <= 0 {
		return 0, false
	}
	name := strings.ToLower(text[at:])
	unit, ok := units[name]
	if !ok {
		unit, ok = units[strings.TrimSuffix(name, "s")]
	}
	n, isNumber := codec.ParseNumber(text[:at])
	x, _ := n.Number()
	most := float64(maxInterval)
	return time.Duration(min(x*float64(unit), most)), ok && isNumber
}

// refusal is the problem of a part of a filter.
func refusal(part, format string, args ...any) error {
	return problem{Status: 400, Detail: fmt.Sprintf("The filter is wrong at %s: %s.", shown(part), fmt.Sprintf(format, args...))}
}
