// Package chart turns many points into the few samples that a line on a screen needs.
//
//	line := chart.M4(repo.Range(ctx, roof, day, tsdb.OldestFirst), day,
//		func(r Reading) (float64, bool) { return r.TempC, true }, chart.Options{Columns: 1000, MaxGap: time.Hour})
//	for s, err := range line { … }
//
// A chart of 1,000 pixels cannot show 100,000 points. [M4] keeps up to four samples for each column of pixels: the first, the
// last, the lowest and the highest. The line through them covers the same pixels as the line through all points
// (Jugel et al., M4: A Visualization-Oriented Time Series Data Aggregation, https://www.vldb.org/pvldb/vol7/p797-jugel.pdf).
// [LTTB] keeps one sample for each column, the one that shapes the line most. It sends a quarter of the samples, and the line is
// no longer exact.
//
// Both read the points once, oldest first, as a stream. Their memory does not grow with the points or with the columns.
//
// # From rollups
//
// [ReadM4] and [ReadLTTB] read the line of a measure themselves, and from a rollup of the schema where one fits: a year of
// readings, one a second, is then 8,760 hours.
//
//	line, err := chart.ReadM4(ctx, repo, roof, year, tempC, chart.Options{Columns: 1000, MaxGap: 2 * time.Hour})
//	for s, err := range line.Samples { … }
//
// A rollup fits if it is derived from points, its measure of the same name and kind keeps window.Min, window.Max and
// window.Ends, and none of its buckets is wider than a column, nor wider than MaxGap. Of those that fit, the one is read that
// goes back furthest in the interval, and of these the one with the widest buckets. The parts of the interval that are not
// whole buckets, or that are older than the rollup is kept, are read from the points, and so are buckets that were stored before
// the rollup kept what a line needs (rollup.Measure.Added). Buckets that changed since a worker last
// computed them are computed from the points, so the newest points are in the line.
//
// A bucket knows its first and its last number with their times, and its lowest and its highest number, but not when they
// came: these samples are in the middle of the bucket, and marked as Approx. If columns begin where buckets begin, M4 draws the
// same pixels as from the points (Source.Exact). Otherwise a lowest or highest number may be drawn one column away from its own.
// Breaks are the same in both cases. Numbers have the decimals that the rollup keeps, and those beyond its Max are missing.
// A rollup that was declared over stored points lacks the older ones until it is rebuilt: until then call [M4] or [LTTB].
package chart

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// MaxColumns is how many columns a line may have.
const MaxColumns = 100_000

// Sample is one point of a line.
type Sample struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
	// Break is true if the line is interrupted before this sample.
	Break bool `json:"break,omitempty"`
	// Approx is true for the lowest and the highest number of a bucket of a rollup. Their points are somewhere in the bucket,
	// which is not wider than a column.
	Approx bool `json:"approx,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (s Sample) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Time   instant.Time `json:"time"`
		Value  float64      `json:"value"`
		Break  bool         `json:"break,omitempty"`
		Approx bool         `json:"approx,omitempty"`
	}{instant.Time{Time: s.Time}, s.Value, s.Break, s.Approx})
}

// Options describe the chart that a line is drawn on.
type Options struct {
	// Columns is the width of the chart in pixels: 1 to MaxColumns. It is required.
	Columns int
	// MaxGap is the longest time between two points that the line bridges; after a longer one it breaks. An interruption inside
	// one column is not visible and is not kept. Zero never breaks the line.
	MaxGap time.Duration
}

// columns divides an interval into columns of equal width.
type columns struct {
	start, end time.Time
	unit       uint64 // of width, in nanoseconds: 1, or 1000 for an interval of centuries
	width      uint64 // of the interval
	n          int
}

func newColumns(in tsdb.Interval, o Options) (columns, error) {
	switch {
	case o.Columns < 1 || o.Columns > MaxColumns:
		return columns{}, invalid.New(tsdb.ErrInvalid, "Columns", strconv.Itoa(o.Columns), "1 to "+strconv.Itoa(MaxColumns))
	case o.MaxGap < 0:
		return columns{}, invalid.New(tsdb.ErrInvalid, "MaxGap", o.MaxGap.String(), "0 for none, or more")
	}
	if err := in.Check(); err != nil {
		return columns{}, err
	}
	start, hasStart := in.Start()
	end, hasEnd := in.End()
	if !hasStart || !hasEnd {
		return columns{}, invalid.New(tsdb.ErrInvalid, "interval", "open", "an interval with a start and an end")
	}
	c := columns{start: start, end: end, unit: 1, n: o.Columns}
	if end.Sub(start) == math.MaxInt64 {
		c.unit = 1000
	}
	c.width = c.since(end)
	return c, nil
}

// since returns the units from the start of the interval to a time in it, or to its end.
func (c columns) since(t time.Time) uint64 {
	seconds, nanos := instant.Between(c.start, t)
	return uint64(seconds)*(1e9/c.unit) + uint64(nanos)/c.unit
}

// at returns the time that many units after the start.
func (c columns) at(units uint64) time.Time {
	perSecond := 1e9 / c.unit
	return time.Unix(c.start.Unix()+int64(units/perSecond), int64(c.start.Nanosecond())+int64(units%perSecond*c.unit))
}

// elapsed returns the nanoseconds from one time to another.
func elapsed(from, to time.Time) float64 {
	seconds, nanos := instant.Between(from, to)
	return float64(seconds)*1e9 + float64(nanos)
}

// of returns the part in which t lies if each column is divided into parts, and false outside of the interval.
func (c columns) of(t time.Time, parts int) (int, bool) {
	if t.Before(c.start) || !t.Before(c.end) {
		return 0, false
	}
	d := min(c.since(t), c.width-1) // in microseconds, the end may be rounded down to t
	hi, lo := bits.Mul64(d, uint64(c.n*parts))
	at, _ := bits.Div64(hi, lo, c.width) // less than the number of parts, as d is less than the width
	return int(at), true
}

// line calls take with each number of the points, and yields their errors. A *tsdb.PointError does not end it.
func line[T any](
	points iter.Seq2[tsdb.Point[T], error], of func(tsdb.Point[T]) (Sample, bool), yield func(Sample, error) bool, take func(Sample) (bool, error),
) (stopped bool, err error) {
	switch {
	case points == nil:
		return false, invalid.New(tsdb.ErrInvalid, "points", "nil", "a sequence")
	case of == nil:
		return false, invalid.New(tsdb.ErrInvalid, "function of the value", "nil", "a function that returns a number")
	}
	var last time.Time
	some := false
	for p, err := range points {
		if err != nil {
			if _, ok := errors.AsType[*tsdb.PointError](err); !ok {
				return false, err
			}
			if !yield(Sample{}, err) {
				return true, nil
			}
			continue
		}
		if some && p.Time.Before(last) {
			return false, fmt.Errorf("chart: point at %s after one at %s, want the oldest first: %w",
				instant.Text(p.Time), instant.Text(last), window.ErrOrder)
		}
		some, last = true, p.Time
		s, ok := of(p)
		if !ok {
			continue
		}
		if more, err := take(s); err != nil || !more {
			return !more, err
		}
	}
	return false, nil
}

// samplesOf returns a function that returns the sample of a point, and false for a point without a finite number.
func samplesOf[T any](of func(T) (float64, bool)) func(tsdb.Point[T]) (Sample, bool) {
	if of == nil {
		return nil
	}
	return func(p tsdb.Point[T]) (Sample, bool) {
		v, ok := of(p.Value)
		return Sample{Time: p.Time, Value: v}, ok && v-v == 0 // not for NaN and infinities
	}
}

// outside is the error of a point that the interval does not hold.
func outside(t time.Time) error {
	return invalid.New(tsdb.ErrInvalid, "point's time", instant.Text(t), "a time in the interval")
}
