package inspect

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// WithRollups returns View.Repository with the derived rollups of the dataset, so that rollup.ReadWindows and the lines of package
// chart can read them. number returns the number that a measure of a rollup has in a payload, and false if it has none. It must be the
// one that the program's own function returns: buckets that no worker has stored yet are computed with it.
//
// A rollup that this program cannot define is left out, such as one in a time zone that this machine does not know. WithRollups
// does no I/O. It fails with ErrInvalid if number is nil.
func (v *View) WithRollups(number func(measure string, p Payload) (float64, bool)) (*tsdb.Repository[Payload], error) {
	if err := v.check(); err != nil {
		return nil, err
	}
	if number == nil {
		return nil, invalid.New(ErrInvalid, "number", "nil", "a function that returns the number of a measure")
	}
	known := map[string]any{}
	for _, entry := range v.dataset.Rollups {
		if entry.Kind != catalog.Derived || entry.From != "" && known[entry.From] == nil {
			continue
		}
		if r, err := defined(entry, number); err == nil {
			known[entry.Name] = r
		}
	}
	return v.repository(known), nil
}

// defined returns a rollup of the catalogue. It fails if the definition would not be the stored one.
func defined(entry catalog.Rollup, number func(string, Payload) (float64, bool)) (*rollup.Rollup[Payload], error) {
	grid, err := gridOf(entry)
	if err != nil {
		return nil, err
	}
	policy, err := gc.Parse(entry.Class.Policy)
	if err != nil {
		return nil, err
	}
	var measures []rollup.Measure[Payload]
	for _, of := range entry.Measures {
		m := rollup.Measure[Payload]{
			Name: of.Name, Decimals: of.Decimals, Linear: of.Linear, MaxGap: time.Duration(of.MaxGap) * time.Millisecond, Added: of.Added,
			Of: func(p Payload) (float64, bool) { return number(of.Name, p) },
		}
		if m.Max, err = strconv.ParseFloat(of.Max, 64); err != nil {
			return nil, err
		}
		if of.Kind != "" {
			if err := m.Kind.UnmarshalText([]byte(of.Kind)); err != nil {
				return nil, err
			}
		}
		for a := window.Count; a <= window.Durations; a <<= 1 {
			if slices.Contains(of.Aggregates, a.String()) {
				m.Aggregates |= a
			}
		}
		measures = append(measures, m)
	}
	r, err := rollup.Define(entry.Name, grid, measures, rollup.Options{
		From: entry.From, Retention: gc.Class{Name: entry.Class.Name, Policy: policy},
		Lateness: time.Duration(entry.Late) * time.Millisecond, Span: time.Duration(entry.Span) * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	if again, _ := inside.Describe(r); !reflect.DeepEqual(again, entry) {
		return nil, fmt.Errorf("inspect: rollup %s has a description that this program would not write", entry.Name)
	}
	return r, nil
}

// gridOf returns the grid of a rollup of the catalogue.
func gridOf(entry catalog.Rollup) (window.Grid, error) {
	every, first, named := strings.Cut(entry.Every, " from ")
	grid, err := window.Parse(every)
	if err != nil {
		return grid, err
	}
	if named {
		weeks, err := strconv.Atoi(strings.TrimSuffix(every, "w"))
		day := slices.IndexFunc([]time.Weekday{0, 1, 2, 3, 4, 5, 6}, func(d time.Weekday) bool { return d.String() == first })
		if err != nil || day < 0 {
			return grid, invalid.New(ErrInvalid, "width", invalid.Quote(entry.Every), "weeks from a day")
		}
		grid = window.Weeks(weeks, time.Weekday(day))
	}
	zone, err := time.LoadLocation(entry.Zone)
	return grid.In(zone), err
}
