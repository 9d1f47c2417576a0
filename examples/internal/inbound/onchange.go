package inbound

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// setOnChange takes onchange=0.5,5m: a dead band of numbers, and the time after which a value is stored in any case.
func (r *Route) setOnChange(value string) error {
	band, least, _ := strings.Cut(value, ",")
	number, ok := codec.ParseNumber(band)
	within, _ := number.Number()
	if !ok || within < 0 {
		return fmt.Errorf("the dead band of onchange is %q; want a number such as 0.5, or 0", band)
	}
	c := &tsdb.OnChange[codec.Record]{Fields: measured, Same: func(last, next codec.Record) bool { return saysNothing(last, next, within) }}
	var err error
	c.AtLeast, err = parseDuration("the time of onchange", least)
	r.change, r.changes = c, value
	return err
}

func (r *Route) checkOnChange() error {
	if r.change != nil && r.count > 0 {
		return errors.New("count and onchange exclude each other: each event counts")
	}
	return nil
}

// measured returns the names of a record's fields that are no tags: all points of a series have the same tags.
func measured(v codec.Record) []string {
	names := make([]string, 0, v.Len())
	for name := range v.All() {
		if !strings.HasPrefix(name, TagPrefix) {
			names = append(names, name)
		}
	}
	return names
}

// saysNothing reports whether all fields of next are those of last. Numbers may differ by as much as within.
func saysNothing(last, next codec.Record, within float64) bool {
	for name, v := range next.All() {
		old, ok := last.Lookup(name)
		if !ok || !near(old, v, within) {
			return false
		}
	}
	return last.Len() == next.Len()
}

func near(a, b codec.Value, within float64) bool {
	if a == b {
		return true
	}
	x, isX := a.Number()
	y, isY := b.Number()
	return isX && isY && math.Abs(x-y) <= within
}
