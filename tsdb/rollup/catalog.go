package rollup

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// A rollup that only the catalogue describes lacks the functions of its measures. Their numbers are unknown: in a
// bucket that changed since a worker stored it they cannot be computed from points, so a read returns the bucket as
// incomplete. Nothing is written.

type (
	readerGate[T any] = inside.Gate[readerCore[T]]
	readerCore[T any] struct{ inside.Core[*Reader[T]] }
)

var _ inside.Face[readerCore[int]] = Reader[int]{}.readerGate

// Rollup returns the rollup of an entry of the catalogue. It needs no reader: nil is enough. fields says that the
// fields of payloads can be read. It fails if the definition would not be the stored one.
func (readerCore[T]) Rollup(entry catalog.Rollup, fields bool) (*Rollup[T], error) {
	grid, err := inside.Of[*window.Aggregator[T]](nil).Grid(entry.Every, entry.Zone)
	if err != nil {
		return nil, err
	}
	policy, err := gc.Parse(entry.Class.Policy)
	if err != nil {
		return nil, err
	}
	var measures []Measure[T]
	for _, m := range entry.Measures {
		measure, err := measureOf[T](m)
		if err != nil {
			return nil, err
		}
		if measure.Field == "" {
			measure.unknown = true
		}
		measures = append(measures, measure)
	}
	made, err := Define(entry.Name, grid, measures, Options{
		Mode: Mode(max(0, slices.Index(modeNames, entry.Kind))), From: entry.From, Retention: gc.Class{Name: entry.Class.Name, Policy: policy},
		Lateness: millis(entry.Late), Span: millis(entry.Span), Remember: millis(entry.Remember), MaxMessages: entry.MaxMessages,
	})
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(made.entry, entry) {
		return nil, fmt.Errorf("rollup %s: its description in the catalogue is not one that this program would write", invalid.Quote(entry.Name))
	}
	made.readOnly, made.blind = true, true
	for i := range made.measures {
		m := &made.measures[i]
		m.unknown = m.unknown || !fields
		made.blind = made.blind && m.unknown
		made.lacks = made.lacks || m.unknown
	}
	made.lacks = made.lacks || made.blind
	return made, nil
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// measureOf returns a measure of the catalogue.
func measureOf[T any](e catalog.RollupMeasure) (Measure[T], error) {
	m := Measure[T]{
		Name: e.Name, Decimals: e.Decimals, Linear: e.Linear, MaxGap: millis(e.MaxGap), Added: e.Added,
	}
	var err error
	if m.Max, err = strconv.ParseFloat(e.Max, 64); err != nil {
		return m, err
	}
	kind, field := e.KindAndField()
	if err := m.Kind.UnmarshalText([]byte(kind)); err != nil {
		return m, err
	}
	m.Field = field
	for a := window.Aggregates(1); a != 0; a <<= 1 {
		if slices.Contains(e.Aggregates, a.String()) {
			m.Aggregates |= a
		}
	}
	return m, nil
}

// computedWidth returns how long the longest bucket is, or 0 if not all measures of buckets can be computed.
func (r *Rollup[T]) computedWidth() time.Duration {
	if r.lacks {
		return 0
	}
	return r.widest()
}

// fresh returns a bucket to which points, or buckets of the finer rollup, are added. The measures that cannot be
// computed are missing.
func (l *level[T]) fresh(start int64) bucket {
	b := bucket{start: start, values: make([]sums, len(l.measures))}
	for i := range b.values {
		if l.measures[i].unknown && l.source == nil {
			b.values[i].missing = l.measures[i].Aggregates | window.Count
		}
	}
	return b
}
