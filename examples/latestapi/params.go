package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/tsdb"
)

// maxShown is how many bytes of a refused value a response repeats.
const maxShown = 64

// params are the parameters of a query. Each is taken by its name, once; the first mistake is kept for check, which every
// handler calls before it reads anything.
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

// text takes a parameter, and reports whether it is there.
func (p *params) text(name string) (string, bool) {
	values, ok := p.values[name]
	if !ok {
		return "", false
	}
	delete(p.values, name)
	if len(values) != 1 {
		p.refuse(name, "there "+strconv.Itoa(len(values))+" times", "there once")
	}
	return values[0], true
}

// integer takes a number from 1 to most; otherwise is for where there is none.
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

// cursor takes the cursor of a page; "" is the first page.
func (p *params) cursor() string {
	text, given := p.text("cursor")
	if given && text == "" {
		p.refuse("cursor", "empty", "left out for the first page")
	}
	return text
}

// leastTimeout is the shortest timeout that a client may set: with less no read can succeed.
const leastTimeout = 10 * time.Millisecond

// timeout takes the time that the answer may take, up to most, which is also for where there is none.
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

// maxStale is how old an answer may be at most: as long as the cache keeps one.
const maxStale = time.Minute

// reads takes max_stale: how old an answer may be, for the cache to give it.
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

// instant takes a time, and reports whether it is there.
func (p *params) instant(name string) (time.Time, bool) {
	text, ok := p.text(name)
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		p.refuse(name, shown(text), "a time as in 2026-06-01T12:00:00Z (a + in a zone is %2B)")
	}
	return t, true
}

// interval takes from, which is included, and to, which is not; either may be missing.
func (p *params) interval() tsdb.Interval {
	from, hasFrom := p.instant("from")
	to, hasTo := p.instant("to")
	switch {
	case hasFrom && hasTo:
		if p.err == nil && !from.Before(to) {
			p.refuse("to", to.Format(time.RFC3339Nano), "after from")
		}
		return tsdb.Between(from, to)
	case hasFrom:
		return tsdb.Since(from)
	case hasTo:
		return tsdb.Until(to)
	}
	return tsdb.AllTime()
}

// order takes the order of points in time.
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

// key takes the first of the fields that are there, in their order: all of them for an entity, fewer for a group.
func (p *params) key(fields []string) (parts []string) {
	missing := ""
	for _, name := range fields {
		text, ok := p.text(name)
		switch {
		case !ok && missing == "":
			missing = name
		case ok && missing != "":
			p.refuse(missing, "missing", "there, as "+name+" is")
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

// entity takes all fields of a key.
func (p *params) entity(of dataset) tsdb.Entity {
	fields := of.fields()
	parts := p.key(fields)
	if p.err == nil && len(parts) < len(fields) {
		p.refuse(fields[len(parts)], "missing", "there: an entity has "+strings.Join(fields, ", "))
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

// prefix takes the first fields of a key, or none for all entities. All fields would be one entity, not a group.
func (p *params) prefix(of dataset) tsdb.Prefix {
	fields := of.fields()
	parts := p.key(fields)
	if len(parts) == len(fields) {
		p.refuse(fields[len(fields)-1], "there", "left out: of one entity, ask for the latest point")
	}
	prefix, err := of.prefix(parts)
	p.judge(err)
	return prefix
}

// shown renders a value of the client's for an answer to it.
func shown(s string) string {
	if s == "" {
		return "empty"
	}
	if len(s) > maxShown {
		return fmt.Sprintf("%q… (%d bytes)", s[:maxShown], len(s))
	}
	return strconv.Quote(s)
}

// bounded takes from and to, which are both required.
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
