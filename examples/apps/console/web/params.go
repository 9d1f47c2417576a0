package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// params are the parameters of a query. Each is read by its name, once. The first mistake is kept for check, which
// every handler calls before it reads data, or withoutParams for it.
type params struct {
	values url.Values
	err    error
}

func paramsOf(r *http.Request) *params {
	values, err := url.ParseQuery(r.URL.RawQuery)
	p := &params{values: values}
	if err != nil {
		p.refuse("the query", shown(r.URL.RawQuery), "parameters with percent escapes, joined by &")
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
	return p.err
}

// all reads the values of a parameter that may be given up to most times.
func (p *params) all(name string, most int) []string {
	values := p.values[name]
	delete(p.values, name)
	if len(values) > most {
		p.refuse(name, fmt.Sprintf("given %d times", len(values)), fmt.Sprintf("at most %d", most))
		return nil
	}
	for _, v := range values {
		if !utf8.ValidString(v) {
			p.refuse(name, shown(v), "valid UTF-8")
		}
	}
	return values
}

// text reads a parameter that may be given once; otherwise is the default.
func (p *params) text(name, otherwise string) string {
	if values := p.all(name, 1); len(values) == 1 {
		return values[0]
	}
	return otherwise
}

// integer reads a number from 1 to most; otherwise is the default.
func (p *params) integer(name string, otherwise, most int) int {
	text := p.text(name, strconv.Itoa(otherwise))
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p.refuse(name, shown(text), fmt.Sprintf("a number from 1 to %d", most))
		return otherwise
	}
	return n
}

// instant reads a time.
func (p *params) instant(name string) time.Time {
	text := p.text(name, "")
	t, err := instant.Parse(text)
	if err != nil {
		p.refuse(name, shown(text), "a time as in 2026-06-01T12:00:00Z")
	}
	return t
}

// maxInterval is the longest interval of a query.
const maxInterval = 100 * 366 * 24 * time.Hour

// interval reads from (inclusive) and to (exclusive), which are both required.
func (p *params) interval() (from, to time.Time, in tsdb.Interval) {
	from, to = p.instant("from"), p.instant("to")
	if p.err == nil && (!from.Before(to) || to.Sub(from) > maxInterval) {
		p.refuse("to", instant.Text(to), "after from, by at most 100 years")
	}
	return from, to, tsdb.Between(from, to)
}

// The most entities of a query, the most fields of these, and the most fields of a list of entities, which may have
// 10,000.
const (
	maxEntities   = 12
	maxFields     = 32
	maxListFields = 12
)

// entities reads entities as Entity.String writes them, at least one.
func (p *params) entities(most int) []tsdb.Entity {
	var all []tsdb.Entity
	for _, text := range p.all("entity", most) {
		var e tsdb.Entity
		if err := e.UnmarshalText([]byte(text)); err != nil || len(e.Parts()) == 0 {
			p.refuse("entity", shown(text), "the key fields joined by /, with %XX for / and %")
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		p.refuse("entity", "missing", "at least one")
	}
	return all
}

// entity reads one entity. Without one it returns the zero Entity, and check an error.
func (p *params) entity() tsdb.Entity {
	if all := p.entities(1); len(all) == 1 {
		return all[0]
	}
	return tsdb.Entity{}
}

// prefix reads the first key fields, or none for all entities.
func (p *params) prefix(d tsdb.Dataset) tsdb.Prefix {
	parts := p.all("part", 32)
	if len(parts) == 0 {
		return tsdb.AllEntities()
	}
	values := make([]any, len(parts))
	for i, part := range parts {
		values[i] = part
	}
	prefix, err := d.Prefix(values...)
	if err != nil && p.err == nil {
		p.err = err
	}
	return prefix
}

// fields reads the names of up to most fields.
func (p *params) fields(most int) []string {
	var all []string
	for _, text := range p.all("field", most) {
		one, err := parseField(text)
		if err != nil && p.err == nil {
			p.err = err
		}
		all = append(all, one)
	}
	return all
}
