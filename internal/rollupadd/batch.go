package rollupadd

import (
	"cloud.google.com/go/bigtable"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// maxCells bounds the mutations of one request.
const maxCells = 10_000

// Batch is the sum of events of one row. Create it with Shape.Batch; the zero Batch is not usable.
type Batch struct {
	shape   *Shape
	buckets map[int64]*totals
	order   []int64
}

type totals struct {
	events   int64
	measures []total
}

type total struct{ count, sum, lo, hi int64 }

// Batch returns an empty batch.
func (s *Shape) Batch() *Batch { return &Batch{shape: s, buckets: map[int64]*totals{}} }

// Cells returns the largest number of mutations for one event.
func (s *Shape) Cells() int { return 1 + 4*len(s.measures) }

// Len returns the largest number of mutations for the batch.
func (b *Batch) Len() int { return len(b.order) * b.shape.Cells() }

// Bytes returns about how many bytes the batch takes in a request.
func (b *Batch) Bytes() int { return b.Len() * (48 + len(b.shape.class)) }

// Add adds an event. It returns false if the batch is full: it has too many cells, or a sum would exceed 64 bits. An
// empty batch accepts any event.
func (b *Batch) Add(e Event) bool {
	t := b.buckets[e.Bucket]
	if t == nil {
		if len(b.order) > 0 && b.Len()+b.shape.Cells() > maxCells {
			return false
		}
		t = &totals{measures: make([]total, len(b.shape.measures))}
		b.buckets[e.Bucket] = t
		b.order = append(b.order, e.Bucket)
	}
	for i, n := range e.Numbers {
		if sum := t.measures[i].sum; n.Has && (n.Value > 0) != (sum+n.Value > sum) && n.Value != 0 {
			return false
		}
	}
	t.events++
	for i, n := range e.Numbers {
		if !n.Has {
			continue
		}
		m := &t.measures[i]
		if m.count == 0 {
			m.lo, m.hi = n.Value, n.Value
		}
		m.count++
		m.sum += n.Value
		m.lo, m.hi = min(m.lo, n.Value), max(m.hi, n.Value)
	}
	return true
}

// Mutation returns the mutation that adds the batch to its row. Applied twice, it counts twice.
func (b *Batch) Mutation() (m *bigtable.Mutation, cells int) {
	m = bigtable.NewMutation()
	add := func(ending, column string, at bigtable.Timestamp, v int64) {
		m.AddIntToCell(b.shape.class+ending, column, at, v)
		cells++
	}
	for _, bucket := range b.order {
		t, at := b.buckets[bucket], bigtable.Timestamp(bucket*1000)
		add(catalog.SumEnding, "n", at, t.events)
		for i := range t.measures {
			d, v := &b.shape.measures[i], &t.measures[i]
			if v.count == 0 {
				continue
			}
			add(catalog.SumEnding, "c."+d.name, at, v.count)
			if d.sum {
				add(catalog.SumEnding, "s."+d.name, at, v.sum)
			}
			if d.lo {
				add(catalog.MinEnding, d.name, at, v.lo)
			}
			if d.hi {
				add(catalog.MaxEnding, d.name, at, v.hi)
			}
		}
	}
	return m, cells
}
