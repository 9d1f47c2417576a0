package lab

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
)

// rawDriver reads and writes rows of a layout with the official client.
type rawDriver struct {
	l     *load
	keys  []layout // by dataset
	table bigtable.TableAPI
}

// The family and the column of raw rows.
const (
	rawFamily = "p"
	rawColumn = "v"
)

func newRawDriver(ctx context.Context, l *load, c *candidate, be *backend, table string) (*rawDriver, error) {
	conf := bigtable.TableConf{TableID: table, Families: map[string]bigtable.GCPolicy{rawFamily: bigtable.NoGcPolicy()}}
	if err := be.admin.CreateTableFromConf(ctx, &conf); err != nil {
		return nil, fmt.Errorf("create table %s: %w", table, err)
	}
	return &rawDriver{l: l, keys: c.keys, table: be.client.OpenTable(table)}, nil
}

func (d *rawDriver) close(context.Context) error { return nil }

// known returns the value of an element for an entity, of which only the first fields are known. It returns false for a
// time, and for what is not known.
func (d *rawDriver) known(e element, of, entity, fields int) (string, bool) {
	s := d.l.datasets[of]
	switch e.kind {
	case tenantElement:
		return d.l.tenantName(s.tenant(entity)), true
	case datasetElement:
		return s.name, true
	case fieldElement:
		return s.part(entity, e.n), e.n < fields
	case saltElement:
		return saltText(d.keys[of].salt(entity)), fields == len(s.fields)
	}
	return "", false
}

func saltText(n int) string { return fmt.Sprintf("%02d", n) }

// key returns the row key of a point.
func (d *rawDriver) key(o op) string {
	var parts []string
	for _, e := range d.keys[o.of].elements {
		text, ok := d.known(e, o.of, o.entity, len(d.l.datasets[o.of].fields))
		if !ok {
			text = timeText(e, o.time)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "#")
}

// scan is a request for the points of an entity, or of all that share its first fields, from one time up to another.
type scan struct {
	ranges bigtable.RowRangeList
	filter bigtable.Filter // nil for none
	newest bool            // the newest rows are at the end of the range
}

func (d *rawDriver) scan(of, entity, fields int, from, to time.Time) scan {
	var s scan
	prefixes, elements := []string{""}, d.keys[of].elements
	var patterns []string
	narrow, filtered, timed := true, false, false // the range still gets narrower; something is not in it; the time is in it
	for i, e := range elements {
		text, ok := d.known(e, of, entity, fields)
		last := i == len(elements)-1
		switch {
		case e.isTime():
			patterns = append(patterns, "[0-9]{13}")
			if narrow {
				low, high := timeText(e, from), timeText(e, to)
				if e.kind == reverseElement {
					low, high = timeText(e, to.Add(-time.Millisecond)), timeText(e, from.Add(-time.Millisecond))
				}
				for _, p := range prefixes {
					s.ranges = append(s.ranges, bigtable.NewClosedOpenRange(p+low, p+high))
				}
				s.newest = e.kind == timeElement
				narrow, timed = false, true
			}
		case ok:
			patterns = append(patterns, regexp.QuoteMeta(text))
			if narrow {
				for i := range prefixes {
					prefixes[i] += text
					if !last {
						prefixes[i] += "#"
					}
				}
			} else {
				filtered = true
			}
		case e.kind == saltElement && narrow:
			patterns = append(patterns, "[0-9]{2}")
			var all []string
			for n := range e.n {
				for _, p := range prefixes {
					all = append(all, p+saltText(n)+"#")
				}
			}
			prefixes = all
		default:
			patterns = append(patterns, "[^#]+")
			narrow = false
		}
	}
	if len(s.ranges) == 0 {
		for _, p := range prefixes {
			s.ranges = append(s.ranges, bigtable.PrefixRange(p))
		}
	}
	var filters []bigtable.Filter
	if filtered {
		filters = append(filters, bigtable.RowKeyFilter(strings.Join(patterns, "#")))
	}
	if !timed {
		filters = append(filters, bigtable.TimestampRangeFilter(from, to))
	}
	switch len(filters) {
	case 1:
		s.filter = filters[0]
	case 2:
		s.filter = bigtable.ChainFilters(filters...)
	}
	return s
}

func (d *rawDriver) read(ctx context.Context, s scan, opts ...bigtable.ReadOption) error {
	if s.filter != nil {
		opts = append(opts, bigtable.RowFilter(s.filter))
	}
	return d.table.ReadRows(ctx, s.ranges, func(bigtable.Row) bool { return true }, opts...)
}

func (d *rawDriver) latest(ctx context.Context, of, entity int, now time.Time) error {
	s := d.scan(of, entity, len(d.l.datasets[of].fields), epoch.Add(-day*365), now.Add(time.Millisecond))
	opts := []bigtable.ReadOption{bigtable.LimitRows(1)}
	if s.newest {
		opts = append(opts, bigtable.ReverseScan())
	}
	return d.read(ctx, s, opts...)
}

func (d *rawDriver) query(ctx context.Context, o op) error {
	s := d.l.datasets[o.of]
	switch o.query.kind {
	case latest:
		return d.latest(ctx, o.of, o.entity, o.time)
	case latestMany:
		entities := d.l.many(o)
		errs, slots := make([]error, len(entities)), make(chan struct{}, 128) // as many as the SDK has under way
		requests := newGroup(ctx)
		for i, e := range entities {
			slots <- struct{}{}
			requests.start(func(ctx context.Context) {
				defer func() { <-slots }()
				errs[i] = d.latest(ctx, o.of, e, o.time)
			})
		}
		requests.wait()
		return errors.Join(errs...)
	case under:
		return d.read(ctx, d.scan(o.of, o.entity, o.query.fields, o.time.Add(-2*s.every), o.time.Add(time.Millisecond)))
	}
	return d.read(ctx, d.scan(o.of, o.entity, len(s.fields), o.time.Add(-o.query.last), o.time))
}

func (d *rawDriver) write(ctx context.Context, ops []op) (failed int, err error) {
	keys, muts := make([]string, len(ops)), make([]*bigtable.Mutation, len(ops))
	for i, o := range ops {
		keys[i], muts[i] = d.key(o), bigtable.NewMutation()
		muts[i].Set(rawFamily, rawColumn, bigtable.Time(o.time).TruncateToMilliseconds(), d.l.datasets[o.of].payload(o))
	}
	errs, err := d.table.ApplyBulk(ctx, keys, muts)
	if err != nil {
		return len(ops), err
	}
	for _, e := range errs {
		if e != nil {
			failed++
			err = e
		}
	}
	return failed, err
}
