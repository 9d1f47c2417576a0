package rollup

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// A rollup that only the catalogue describes lacks the functions of its measures. It is storedOnly: buckets that changed since a worker
// stored them cannot be computed from points, so a read returns them as incomplete, and nothing is written.

// fromCatalog makes the zero r the rollup of an entry. It fails if the definition would not be the stored one.
func (r *Rollup[T]) fromCatalog(entry catalog.Rollup) error {
	grid, err := gridOf(entry)
	if err != nil {
		return err
	}
	policy, err := gc.Parse(entry.Class.Policy)
	if err != nil {
		return err
	}
	var measures []Measure[T]
	for _, m := range entry.Measures {
		measure, err := measureOf[T](m)
		if err != nil {
			return err
		}
		measures = append(measures, measure)
	}
	made, err := Define(entry.Name, grid, measures, Options{
		Mode: Mode(max(0, slices.Index(modeNames, entry.Kind))), From: entry.From, Retention: gc.Class{Name: entry.Class.Name, Policy: policy},
		Lateness: millis(entry.Late), Span: millis(entry.Span), Remember: millis(entry.Remember), MaxMessages: entry.MaxMessages,
	})
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(made.entry, entry) {
		return fmt.Errorf("rollup %s: its description in the catalogue is not one that this program would write", invalid.Quote(entry.Name))
	}
	made.storedOnly = true // before the copy, which shares functions of made
	*r = *made
	return nil
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// measureOf returns a measure of the catalogue.
func measureOf[T any](e catalog.RollupMeasure) (Measure[T], error) {
	m := Measure[T]{
		Name: e.Name, Decimals: e.Decimals, Linear: e.Linear, MaxGap: millis(e.MaxGap), Added: e.Added,
		Of: func(T) (float64, bool) { return 0, false }, // never called
	}
	var err error
	if m.Max, err = strconv.ParseFloat(e.Max, 64); err != nil {
		return m, err
	}
	if e.Kind != "" {
		if err := m.Kind.UnmarshalText([]byte(e.Kind)); err != nil {
			return m, err
		}
	}
	for a := window.Count; a <= window.Durations; a <<= 1 {
		if slices.Contains(e.Aggregates, a.String()) {
			m.Aggregates |= a
		}
	}
	return m, nil
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

// computedWidth returns how long the longest bucket is, or 0 if buckets cannot be computed.
func (r *Rollup[T]) computedWidth() time.Duration {
	if r.storedOnly {
		return 0
	}
	return r.widestBucket()
}

// unknown returns a bucket that changed, and that only a program with the functions of the measures can compute.
func (l *level[T]) unknown(start, changed int64) bucket {
	b := bucket{start: start, values: make([]sums, len(l.measures)), changed: changed}
	for i := range b.values {
		b.values[i].missing = l.measures[i].Aggregates
	}
	return b
}
