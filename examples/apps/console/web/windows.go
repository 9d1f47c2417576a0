package web

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

const day = 24 * time.Hour

// widths are the windows of a chart. Each begins where smaller ones begin, as buckets of rollups do.
var widths = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 5 * day, 10 * day, 20 * day, 50 * day,
}

// windows are windows to read, of one entity.
type windows struct {
	rollup   string    // that they are read from; "" for the points
	from, to time.Time // what they cover
	buckets  iter.Seq2[window.Bucket, error]
}

// widest is how many columns a window may have, if a rollup answers then.
const widest = 4

// windows returns lines of windows, each at least a column wide. Those of measures that the program knows come from a
// rollup, if one fits.
func (s *Console) windows(ctx context.Context, id tenant.ID, d *dataset, repo *tsdb.Repository[codec.Record], q linesQuery) (*lines, error) {
	newest, err := repo.AsOf(ctx, q.entity, q.to)
	if err != nil && !errors.Is(err, tsdb.ErrNotFound) && !bad(err) {
		return nil, err
	}
	out := &lines{Lines: make([]line, len(q.names))}
	width := widths[len(widths)-1]
	if i := slices.IndexFunc(widths, func(w time.Duration) bool { return w >= q.column() }); i >= 0 {
		width = widths[i]
	}
	rest := make([]int, 0, len(q.names)) // the numbers of fields
	for i := range q.names {
		rest = append(rest, i)
	}
	if d.known != nil {
		var stored []int
		stored, rest = d.known.measured(q.names)
		found, w, err := s.stored(ctx, id, d.known, q.of(stored))
		switch {
		case err != nil:
			return nil, err
		case found.rollup != "":
			width = w
			if err := out.collect(q, stored, newest, width, found); err != nil {
				return nil, err
			}
			if err := out.findLast(ctx, repo, q, stored, found); err != nil {
				return nil, err
			}
		default:
			rest = append(stored, rest...)
		}
	}
	out.Window = inMillis(width)
	if len(rest) == 0 {
		return out, nil
	}
	measures := make([]window.Measure[codec.Record], len(rest))
	for i, field := range rest {
		name := q.names[field]
		measures[i] = window.Measure[codec.Record]{Name: shownField(name), Of: func(r codec.Record) (float64, bool) { return number(r, name) }}
	}
	by, err := window.New(gridOf(width), measures, window.Options{})
	if err != nil {
		return nil, err
	}
	return out, out.collect(q, rest, newest, width, windows{from: q.from, to: q.to, buckets: by.Read(ctx, repo, q.entity, tsdb.Between(q.from, q.to), tsdb.OldestFirst)})
}

func (q linesQuery) column() time.Duration { return q.to.Sub(q.from) / time.Duration(q.columns) }

// of returns the query for some of the fields.
func (q linesQuery) of(fields []int) linesQuery {
	all := q.names
	q.names = nil
	for _, i := range fields {
		q.names = append(q.names, all[i])
	}
	return q
}

// stored returns the narrowest windows that a rollup has, and their width. It returns the zero Windows if none fits.
func (s *Console) stored(ctx context.Context, id tenant.ID, k Known, q linesQuery) (windows, time.Duration, error) {
	for _, width := range widths {
		if width < q.column() || width > widest*q.column() || len(q.names) == 0 {
			continue
		}
		if found, err := k.windows(ctx, s.Store, id, q, width); err != nil || found.rollup != "" {
			return found, width, err
		}
	}
	return windows{}, 0, nil
}

func gridOf(width time.Duration) window.Grid {
	if width >= day {
		return window.Days(int(width / day))
	}
	return window.Every(width)
}

// collect adds the lines of some fields from their windows, oldest first.
func (out *lines) collect(q linesQuery, fields []int, newest tsdb.Point[codec.Record], width time.Duration, found windows) error {
	for b, err := range found.buckets {
		if bad(err) {
			out.Bad++
			continue
		}
		if err != nil {
			return err
		}
		for i, field := range fields {
			if v := &b.Values[i]; v.Count > 0 {
				out.Lines[field].window(&b, v, q, width, newest.Time)
				out.Lines[field].figure(v, found)
			}
		}
	}
	for _, field := range fields { // the end of a line is the newest number, and no mean
		l := &out.Lines[field]
		l.Rollup = found.rollup
		if x, ok := number(newest.Value, q.names[field]); ok && len(l.Times) > 0 && millis(newest.Time) > l.Times[len(l.Times)-1] && newest.Time.Before(q.to) {
			l.Times, l.Values, l.Low, l.High = append(l.Times, millis(newest.Time)), append(l.Values, x), append(l.Low, x), append(l.High, x)
		}
	}
	return nil
}

// figure adds a window to the figures of its line.
func (l *line) figure(v *window.Summary, found windows) {
	if l.Figures == nil {
		l.Figures = &lineFigures{From: millis(found.from), To: millis(found.to)}
	}
	l.Figures.add(v)
	if !v.LastTime.IsZero() {
		l.Figures.Last = &v.Last
	}
}

// findLast finds the newest number of lines from a rollup, whose buckets may not keep it. It looks at a few points.
func (out *lines) findLast(ctx context.Context, repo *tsdb.Repository[codec.Record], q linesQuery, fields []int, found windows) error {
	newest, err := repo.LatestFields(ctx, q.entity, tsdb.FieldOptions{AsOf: found.to.Add(-1), MaxPoints: fewPoints})
	if err != nil && !bad(err) {
		if errors.Is(err, tsdb.ErrNotFound) {
			return nil
		}
		return err
	}
	for _, field := range fields {
		f := out.Lines[field].Figures
		at, ok := newest.Times.Of(q.names[field])
		if x, number := number(newest.Value, q.names[field]); f != nil && ok && number && !at.Before(found.from) {
			f.Last = &x
		}
	}
	return nil
}

// window adds a window: in its middle, or in that of its part which is in the interval and has points.
func (l *line) window(b *window.Bucket, v *window.Summary, q linesQuery, width time.Duration, newest time.Time) {
	start, end := b.Start, b.End
	if start.Before(q.from) {
		start = q.from
	}
	for _, t := range []time.Time{q.to, newest} {
		if t.After(start) && t.Before(end) {
			end = t
		}
	}
	at := start.Add(end.Sub(start) / 2)
	if silent := b.Start.Sub(l.last); q.gap > 0 && !l.last.IsZero() && silent > 0 && silent+width > q.gap {
		l.breakBefore(at)
	}
	l.Times, l.Values, l.Low, l.High = append(l.Times, millis(at)), append(l.Values, v.Mean), append(l.Low, v.Min), append(l.High, v.Max)
	l.last = b.End
}
