package rollup

import (
	"math"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/sketch"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// bucket holds the aggregates of one bucket. Its start is in milliseconds; the bucket that contains 1970-01-01 has
// start 0.
type bucket struct {
	start  int64
	points int64
	bad    int64 // points that could not be decoded
	values []sums
	// changed is when the bucket changed, in milliseconds, if it changed since it was stored and cannot be computed
	// here. Its measures then miss everything, and stored is what is stored of it. It is 0 for a bucket that is known.
	changed int64
	stored  *bucket
	blind   bool // how many points it has is not known either
}

func (b *bucket) empty() bool { return b.points == 0 && b.bad == 0 && b.changed == 0 }

// asStored returns what is stored of the bucket. Merging it does not change b.
func (b *bucket) asStored() bucket {
	switch {
	case b.stored != nil:
		return *b.stored
	case b.changed != 0:
		return bucket{start: b.start, values: make([]sums, len(b.values))}
	}
	own := *b
	own.values = slices.Clone(b.values)
	for i := range own.values {
		if v := &own.values[i]; v.sketch != nil {
			v.sketch = new(sketch.Sketch)
			v.sketch.Merge(b.values[i].sketch)
		}
	}
	return own
}

// merge adds a later bucket, of this or a finer rollup.
func (r *Rollup[T]) merge(b *bucket, o bucket) {
	if b.changed != 0 || o.changed != 0 {
		stored := b.asStored()
		r.merge(&stored, o.asStored())
		b.stored, b.changed, b.blind = &stored, max(b.changed, o.changed), b.blind || o.blind
	}
	b.points += o.points
	b.bad += o.bad
	shift := (o.start - b.start) * int64(time.Millisecond)
	for i := range b.values {
		v := o.values[i]
		v.firstAt, v.lastAt = v.firstAt+shift, v.lastAt+shift
		r.measures[i].merge(&b.values[i], v)
	}
}

// add adds a point to the bucket by its numbers, one for each measure.
func (r *Rollup[T]) add(b *bucket, t time.Time, numbers []rollupadd.Number) {
	b.points++
	at := int64(t.Sub(time.UnixMilli(b.start)))
	for i := range r.measures {
		m, s := &r.measures[i], &b.values[i]
		if !numbers[i].Has {
			continue
		}
		x := numbers[i].Value
		m.merge(s, alone(x, at))
		if m.has(window.Quantiles) {
			if s.sketch == nil {
				s.sketch = new(sketch.Sketch)
			}
			s.sketch.Add(float64(x) / math.Pow10(m.Decimals))
		}
	}
}

// public converts a bucket to the public type. Its measures know only the bucket's own numbers.
func (r *Rollup[T]) public(b *bucket, now int64) window.Bucket {
	start := r.grid.Start(time.UnixMilli(b.start))
	end := r.grid.Next(start)
	out := window.Bucket{
		Start:  start,
		End:    end,
		Points: b.points,
		Bad:    b.bad,
		Open:   end.UnixMilli()+r.entry.Late > now,
		Values: make([]window.Summary, len(r.measures)),
	}
	for i := range r.measures {
		out.Values[i] = r.measures[i].summary(&b.values[i], time.UnixMilli(b.start))
	}
	if b.changed != 0 {
		stored := b.asStored()
		known := r.public(&stored, now)
		if b.blind {
			out.Points, out.Bad = 0, 0
		}
		out.Incomplete = &window.Incomplete{Changed: time.UnixMilli(min(b.changed, now)).UTC(), Points: known.Points, Bad: known.Bad, Values: known.Values}
	}
	return out
}
