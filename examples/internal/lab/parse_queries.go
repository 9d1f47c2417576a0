package lab

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const kinds = "latest, latest_many, range, under or aggregate"

func (r *fileReader) query(p *Plan, node *yaml.Node, path string) *query {
	o := r.object(node, path)
	text, at := o.text("kind")
	q := &query{kind: kind(text)}
	o.require("kind", kinds)
	o.require("rate", "how often it is asked, such as 10/s")
	q.rate = value(o, "rate", 0, 0, 10_000_000, parseRate, shownRate)
	q.of = r.datasetOf(p, o)
	switch q.kind {
	case latest:
	case latestMany:
		q.entities = value(o, "entities", 50, 2, 1000, parseCount, strconv.Itoa)
	case ranged:
		q.last = duration(o, "last", time.Hour, time.Second, 3660*day)
	case under:
		q.fields = value(o, "fields", 1, 0, maxFields, parseCount, strconv.Itoa)
		if q.of != nil && q.fields >= len(q.of.fields) {
			r.mistake(at, "%s is under, which reads the entities below the first fields of a key; dataset %s has the fields %s, so want fields: 0 to %d",
				o.name("kind"), q.of.name, q.of.fieldNames(), len(q.of.fields)-1)
		}
	case aggregate:
		q.last = duration(o, "last", 24*time.Hour, time.Minute, 3660*day)
		q.every = duration(o, "every", time.Hour, time.Second, 366*day)
		if q.last/q.every > 10_000 {
			r.mistake(o.field("every"), "%s gives %d buckets; want at most 10000", o.name("every"), q.last/q.every)
		}
	default:
		if at != nil {
			r.mistake(at, "%s is %s; want %s", o.name("kind"), quote(text), kinds)
		}
		return q // other fields depend on it
	}
	o.done()
	return q
}

// datasetOf returns the dataset that a query names; where there is one only, it need not.
func (r *fileReader) datasetOf(p *Plan, o *object) *dataset {
	text, at := o.text("dataset")
	if at == nil {
		if len(p.datasets) == 1 {
			return p.datasets[0]
		}
		if len(p.datasets) > 1 {
			o.require("dataset", "the name of a dataset, because there are several")
		}
		return nil
	}
	i := slices.IndexFunc(p.datasets, func(d *dataset) bool { return d.name == text })
	if i < 0 {
		var names []string
		for _, d := range p.datasets {
			names = append(names, d.name)
		}
		r.mistake(at, "%s is %s; want %s", o.name("dataset"), quote(text), strings.Join(names, " or "))
		return nil
	}
	return p.datasets[i]
}

func (r *fileReader) candidate(p *Plan, node *yaml.Node, path string) *candidate {
	o := r.object(node, path)
	c := &candidate{
		heads:  value(o, "heads", 0, 0, 100, parseCount, strconv.Itoa),
		rollup: duration(o, "rollup", 0, time.Second, 31*day),
	}
	if o.node == nil {
		return nil
	}
	o.require("key", "a row key, such as tenant#entity#~time")
	text, at := o.text("key")
	if c.key = text; at != nil {
		o.printable("key", text, at)
		for _, d := range p.datasets {
			l, err := parseLayout(text, d, len(p.datasets))
			if err != nil {
				r.mistake(at, "%s is %s: %v", o.name("key"), quote(text), err)
				break
			}
			c.keys = append(c.keys, l)
		}
	}
	for _, only := range []struct {
		name string
		set  bool
	}{{"heads", c.heads > 0}, {"rollup", c.rollup > 0}} {
		if only.set && at != nil && !c.native() {
			r.mistake(o.field(only.name), "%s is for keys of this module, tenant#entity#~time or tenant#salt(n)#entity#~time", o.name(only.name))
		}
	}
	if c.rollup > 0 && day%c.rollup != 0 {
		r.mistake(o.field("rollup"), "%s is %s; want a part of a day, such as 15m or 1h", o.name("rollup"), shownDuration(c.rollup))
	}
	c.name = c.key
	if name, at := o.text("name"); at != nil {
		c.name = name
		if len(name) > 40 {
			r.mistake(at, "%s has %d bytes; want at most 40", o.name("name"), len(name))
		}
		o.printable("name", name, at)
	}
	if slices.ContainsFunc(p.candidates, func(other *candidate) bool { return other.name == c.name }) {
		r.mistake(o.node, "%s: another candidate is called %s; give this one another name", o.path, quote(c.name))
	}
	o.done()
	return c
}

func (r *fileReader) expect(p *Plan, node *yaml.Node) {
	o := r.object(node, "expect")
	if len(p.candidates) > 0 {
		p.expect.candidate = p.candidates[0]
	}
	if text, at := o.text("candidate"); at != nil {
		i := slices.Index(p.Candidates(), text)
		if i < 0 {
			r.mistake(at, "expect.candidate is %s; want the name of a candidate: %s", quote(text), strings.Join(p.Candidates(), ", "))
		} else {
			p.expect.candidate = p.candidates[i]
		}
	}
	p.expect.hottest = value(o, "hottest_cpu", 0, 0.01, 1, parsePercent, shownPercent)
	p.expect.p99 = duration(o, "p99", 0, time.Microsecond, time.Hour)
	p.expect.rows = value(o, "rows_per_query", 0, 1, math.MaxInt32, parseNumber, number)
	if text, at := o.text("best"); at != nil {
		if text != "true" && text != "false" {
			r.mistake(at, "expect.best is %s; want true or false", quote(text))
		}
		p.expect.best = text == "true"
	}
	o.done()
}
