package rollup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/reach"
)

const (
	// maxReplaced is about how many mutations one replacement has.
	maxReplaced = 20_000
	// sketchWeight is how many mutations of aggregates a sketch counts for: it takes some KB.
	sketchWeight = 100
	// maxRaces is how often a row is retried immediately after another worker changed it first.
	maxRaces = 5
)

// errRaced: another worker changed the row during each attempt. A later pass of any worker tries again.
var errRaced = errors.New("rollup: another worker changed the row during each attempt")

// replaceAll recomputes buckets of one row and replaces the stored ones that differ. It skips buckets that can no
// longer be computed. It returns the starts of the changed buckets.
func (l *level[T]) replaceAll(ctx context.Context, path string, starts []int64) (changed []int64, err error) {
	if lost := l.lost(starts); lost > 1 {
		starts = starts[lost-1:] // one is enough to raise the row's generation
	}
	for chunk := range slices.Chunk(starts, max(1, maxReplaced/(2*len(l.layout.places)+sketchWeight*len(l.layout.sketches)))) {
		c, err := l.replace(ctx, path, chunk)
		if err != nil {
			return changed, err
		}
		changed = append(changed, c...)
	}
	return changed, nil
}

// lost returns how many of the ascending starts belong to buckets that can no longer be replaced.
func (l *level[T]) lost(starts []int64) int {
	n, _ := slices.BinarySearch(starts, l.replaceable(l.in.Clock()))
	return n
}

func (l *level[T]) replace(ctx context.Context, path string, starts []int64) (changed []int64, err error) {
	for range maxRaces {
		if changed, raced, err := l.replaceOnce(ctx, path, starts); err != nil || !raced {
			return changed, err
		}
		reach.Point(reach.OutrunBucket)
	}
	return nil, fmt.Errorf("%w: %s", errRaced, l.name)
}

// replaceOnce reads the row's generation before the source of the buckets, and writes only if the generation is
// unchanged. It raises the generation even if no bucket differs or none can be computed any more. Its caller then
// removes the marks, and an older computation that stalled must not write its outdated result.
func (l *level[T]) replaceOnce(ctx context.Context, path string, starts []int64) (changed []int64, raced bool, err error) {
	if err := l.admit(ctx, path); err != nil {
		return nil, false, err
	}
	at := l.rowOf(starts[0])
	key := l.rowKey(path, at)
	filter := l.layout.isGeneration("")
	if starts = starts[l.lost(starts):]; len(starts) > 0 { // check at each attempt: points may have expired since
		first, last := starts[0], starts[len(starts)-1]
		filter = bigtable.InterleaveFilters(filter,
			bigtable.ChainFilters(l.layout.cells, bigtable.TimestampRangeFilterMicros(bigtable.Timestamp(first*1000), bigtable.Timestamp((last+1)*1000))))
	}
	row, err := l.table.Row(ctx, key, filter)
	if err != nil {
		return nil, false, l.in.Explain(err)
	}
	old, err := l.layout.stored(row)
	if err != nil {
		return nil, false, err
	}
	generation, err := l.layout.generation(row)
	if err != nil {
		return nil, false, err
	}
	m := replacement{Mutation: bigtable.NewMutation()}
	for len(starts) > 0 {
		n := 1
		for n < len(starts) && l.endOf(starts[n-1]) == starts[n] {
			n++
		}
		c, err := l.recompute(ctx, path, starts[:n], old, &m)
		if err != nil {
			return nil, false, err
		}
		changed, starts = append(changed, c...), starts[n:]
	}
	m.Set(l.layout.control, columnGeneration, bigtable.Timestamp((at+l.entry.Span)*1000), l.layout.next(generation))
	same, then, otherwise := l.layout.isGeneration(generation.value), m.Mutation, (*bigtable.Mutation)(nil)
	if generation.value == "" {
		then, otherwise = otherwise, then
	}
	if err := l.admit(ctx, path); err != nil { // the tenant may have been erased during the computation
		return nil, false, err
	}
	matched, out := l.table.Conditional(ctx, key, same, then, otherwise)
	if out.State != bt.Stored {
		return nil, false, l.in.Explain(out.Err)
	}
	return changed, matched != (then != nil), nil
}

// admit returns an error if the entity or its tenant has been erased.
func (l *level[T]) admit(ctx context.Context, path string) error {
	if err := l.in.Allow(ctx); err != nil {
		return err
	}
	return l.in.AdmitEntity(path)
}

// recompute adds the mutations to m that replace adjacent buckets by recomputed ones.
func (l *level[T]) recompute(ctx context.Context, path string, starts []int64, old []bucket, m *replacement) (changed []int64, err error) {
	put := func(start int64, b *bucket) {
		var was *bucket
		if i, ok := slices.BinarySearchFunc(old, start, byStart); ok {
			was = &old[i]
		}
		before := m.count
		if l.layout.put(m, was, b); m.count != before {
			changed = append(changed, start)
		}
	}
	none := func(until int64) {
		for ; len(starts) > 0 && starts[0] < until; starts = starts[1:] {
			put(starts[0], &bucket{start: starts[0], values: make([]sums, len(l.measures))})
		}
	}
	last := starts[len(starts)-1]
	err = l.compute(ctx, path, span{starts[0], last + 1}, func(b bucket) error {
		none(b.start)
		put(b.start, &b)
		starts = starts[1:]
		return nil
	})
	if err == nil {
		none(last + 1)
	}
	return changed, err
}

func byStart(b bucket, start int64) int { return cmp.Compare(b.start, start) }

// rowKey returns the key of an entity's row that starts at ms.
func (l *level[T]) rowKey(path string, ms int64) string {
	var buf [256]byte
	return string(l.at.Rows.AppendPoint(buf[:0], path, ms))
}
