package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxShown is the number of bytes of a refused value that a response repeats.
const maxShown = 64

// params are the parameters of a query. Each is read by its name, once. The first mistake is kept for check, which
// every handler calls before it reads data.
type params struct {
	values url.Values
	err    *problem
}

func paramsOf(r *http.Request) *params {
	values, err := url.ParseQuery(r.URL.RawQuery)
	p := &params{values: values}
	if err != nil {
		p.refuse("query", shown(r.URL.RawQuery), "parameters with percent escapes, joined by &")
	}
	return p
}

func (p *params) refuse(field, value, limit string) {
	if p.err == nil {
		p.err = refused(field, value, limit)
	}
}

// check returns the first mistake. An unused parameter is one: a filter with a misspelt name would not filter.
func (p *params) check() error {
	for name := range p.values {
		p.refuse("parameter "+shown(name), "not known here", "one that the address takes")
	}
	if p.err != nil {
		return p.err
	}
	return nil
}

// text reads a parameter, and reports whether it is present.
func (p *params) text(name string) (string, bool) {
	values, ok := p.values[name]
	if !ok {
		return "", false
	}
	delete(p.values, name)
	if len(values) != 1 {
		p.refuse(name, "present "+strconv.Itoa(len(values))+" times", "one value")
	}
	return values[0], true
}

// integer reads a number from 1 to most; otherwise is the default.
func (p *params) integer(name string, otherwise, most int) int {
	text, ok := p.text(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p.refuse(name, shown(text), fmt.Sprintf("a number from 1 to %d", most))
	}
	return n
}

// cursor reads the cursor of a page; "" is the first page.
func (p *params) cursor() string {
	text, given := p.text("cursor")
	if given && text == "" {
		p.refuse("cursor", "empty", "left out for the first page")
	}
	return text
}

// leastTimeout is the shortest timeout that a client may set: a shorter one would fail every read.
const leastTimeout = 10 * time.Millisecond

// timeout reads the time for the response, at most most, which is also the default.
func (p *params) timeout(most time.Duration) time.Duration {
	const name = "timeout"
	least := min(leastTimeout, most)
	text, ok := p.text(name)
	if !ok {
		return most
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		p.refuse(name, shown(text), fmt.Sprintf("a duration from %v to %v", least, most))
	}
	return d
}

// maxStale is the largest max_stale: as long as the cache keeps a point.
const maxStale = time.Minute

// reads reads max_stale: how old a cached answer may be.
func (p *params) reads() []tsdb.ReadOption {
	text, ok := p.text("max_stale")
	if !ok {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxStale {
		p.refuse("max_stale", shown(text), fmt.Sprintf("a duration from 0s to %v", maxStale))
	}
	return []tsdb.ReadOption{tsdb.MaxStale(d)}
}

// instant reads a time, and reports whether it is present. A date or a time without an offset is in the zone of the
// request.
func (p *params) instant(name string) (time.Time, bool) {
	text, ok := p.text(name)
	if !ok {
		return time.Time{}, false
	}
	zone, err := time.LoadLocation(p.values.Get("zone")) // "" is UTC; grid refuses a wrong one
	if err != nil {
		zone = time.UTC
	}
	t, err := aggregate.ParseTime(text, zone)
	if err != nil {
		p.refuse(name, shown(text), "a time as in 2026-06-01T12:00:00Z, or a date (a + in an offset is %2B)")
	}
	return t, true
}

// option reads a time for an option of which the zero time, in year 1, says that there is none.
func (p *params) option(name string) time.Time {
	t, ok := p.instant(name)
	if ok && t.IsZero() {
		t = t.Add(1)
	}
	return t
}

// interval reads from (inclusive) and to (exclusive); either may be missing.
func (p *params) interval() tsdb.Interval {
	from, hasFrom := p.instant("from")
	to, hasTo := p.instant("to")
	switch {
	case hasFrom && hasTo:
		if p.err == nil && !from.Before(to) {
			p.refuse("to", aggregate.Instant(to), "after from")
		}
		return tsdb.Between(from, to)
	case hasFrom:
		return tsdb.Since(from)
	case hasTo:
		return tsdb.Until(to)
	}
	return tsdb.AllTime()
}

// order reads the order of points in time.
func (p *params) order(otherwise tsdb.Order) tsdb.Order {
	text, ok := p.text("order")
	switch {
	case !ok:
		return otherwise
	case text == "newest":
		return tsdb.NewestFirst
	case text != "oldest":
		p.refuse("order", shown(text), "newest or oldest")
	}
	return tsdb.OldestFirst
}

// key reads the leading fields that are present, in their order: all of them for an entity, fewer for a group.
func (p *params) key(fields []string) (parts []string) {
	missing := ""
	for _, name := range fields {
		text, ok := p.text(name)
		switch {
		case !ok && missing == "":
			missing = name
		case ok && missing != "":
			p.refuse(missing, "missing", "a value, because "+name+" has one")
		case ok && text == "":
			p.refuse(name, "empty", "left out, or at least one byte")
		case ok && !utf8.ValidString(text):
			p.refuse(name, shown(text), "valid UTF-8")
		case ok:
			parts = append(parts, text)
		}
	}
	return parts
}

// entity reads all fields of a key.
func (p *params) entity(of dataset) tsdb.Entity {
	fields := of.fields()
	parts := p.key(fields)
	if p.err == nil && len(parts) < len(fields) {
		p.refuse(fields[len(parts)], "missing", "a value: an entity has "+strings.Join(fields, ", "))
	}
	e, err := of.entity(parts)
	p.judge(err)
	return e
}

// judge records what is wrong with the value of a key field.
func (p *params) judge(err error) {
	if p.err == nil && err != nil {
		p.err = problemOf(err)
	}
}

// prefix reads the leading fields of a key, or none for all entities. All fields would be one entity, not a group.
func (p *params) prefix(of dataset) tsdb.Prefix {
	fields := of.fields()
	parts := p.key(fields)
	if len(parts) == len(fields) {
		p.refuse(fields[len(fields)-1], "present", "no value: for one entity, ask for the latest point")
	}
	prefix, err := of.prefix(parts)
	p.judge(err)
	return prefix
}

// shown renders a value of the client for a response.
func shown(s string) string {
	if s == "" {
		return "empty"
	}
	if len(s) > maxShown {
		return fmt.Sprintf("%q… (%d bytes)", s[:maxShown], len(s))
	}
	return strconv.Quote(s)
}

// bounded reads from and to, which are both required.
func (p *params) bounded() tsdb.Interval {
	in := p.interval()
	if _, ok := in.Start(); !ok {
		p.refuse("from", "missing", "the time at which the interval starts")
	}
	if _, ok := in.End(); !ok {
		p.refuse("to", "missing", "the time at which the interval ends")
	}
	return in
}
