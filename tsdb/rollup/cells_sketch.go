package rollup

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/sketch"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// sketchPlace is the columns of a measure's sketches, one for each bucket.
type sketchPlace struct {
	measure int
	prefix  string // of the columns; the start of the bucket follows
}

// maxSketches is how many bytes the sketches of a row may have: the size of a row that Bigtable recommends. It reads
// none of more than 256 MiB.
const maxSketches = 100 << 20

// sketchBytes returns how many bytes a sketch of the measure has at most. The numbers are multiples of 10^-Decimals, up
// to Max. Each power of two up to there has at most 64 bins, and at most one for each multiple. A bin takes a byte, and
// up to three more for its count of up to two million numbers.
func (m *Measure[T]) sketchBytes() int64 {
	const of, bin = 64, 4
	bins := int64(1) // of zero
	for size := uint64(1); size <= 2*uint64(m.Max*math.Pow10(m.Decimals)); size *= 2 {
		bins += 2 * int64(min(of, size)) // of both signs
	}
	return bin * bins
}

// checkSketches refuses rows that sketches could make too large.
func (r *Rollup[T]) checkSketches() error {
	var bucket, measures int64
	for i := range r.measures {
		if m := &r.measures[i]; m.has(window.Quantiles) {
			bucket += m.sketchBytes()
			measures++
		}
	}
	if buckets := int64(r.opts.Span / r.width()); bucket*buckets > maxSketches {
		return invalid.New(tsdb.ErrInvalid, "Span", r.opts.Span.String(), fmt.Sprintf(
			"at most %v: the quantiles of the measures (%d) take up to %d KiB a bucket, and those of a row at most %d MiB; with a smaller Max they take less",
			(time.Duration(maxSketches/bucket)*r.width()).Truncate(r.step()), measures, bucket>>10, maxSketches>>20))
	}
	return nil
}

// takeSketches adds the encoded sketches of a row to its buckets.
func (l *layout) takeSketches(row *bt.Row, out []bucket) {
	if len(l.sketches) == 0 {
		return
	}
	for _, item := range row.Family(l.control) {
		start := int64(item.Timestamp) / 1000
		i, found := slices.BinarySearchFunc(out, start, byStart)
		if !found {
			continue
		}
		for _, k := range l.sketches {
			if after, ok := strings.CutPrefix(item.Column, k.prefix); ok && after == strconv.FormatInt(start, 10) {
				v := &out[i].values[k.measure]
				v.encoded, v.seen = append([]byte{}, item.Value...), v.seen|window.Quantiles // not nil, even if it is empty
			}
		}
	}
}

// decode decodes the sketches in the buckets of a row.
func (l *layout) decode(key string, buckets []bucket) error {
	for i := range buckets {
		for _, k := range l.sketches {
			v := &buckets[i].values[k.measure]
			if v.encoded == nil {
				continue
			}
			v.sketch = new(sketch.Sketch)
			err := v.sketch.UnmarshalBinary(v.encoded)
			if err == nil && v.sketch.Count() != v.count {
				err = fmt.Errorf("it has %d numbers, want %d", v.sketch.Count(), v.count)
			}
			if err != nil {
				return fmt.Errorf("rollup: row %q has a damaged sketch in %s%d; Rebuild replaces it: %w", key, k.prefix, buckets[i].start, err)
			}
			v.encoded = nil
		}
	}
	return nil
}

// putSketches replaces the sketches of bucket old by those of b.
func (l *layout) putSketches(m *replacement, old, b *bucket) {
	at := bigtable.Timestamp(b.start * 1000)
	for _, k := range l.sketches {
		column := strings.TrimPrefix(k.prefix, l.control+":") + strconv.FormatInt(b.start, 10)
		var had, has []byte
		if old != nil {
			had = old.values[k.measure].encoded
		}
		if s := b.values[k.measure].sketch; s != nil {
			has, _ = s.AppendBinary(nil) // has no errors
		}
		switch {
		case bytes.Equal(had, has) && (had == nil) == (has == nil):
			continue
		case has == nil:
			m.DeleteTimestampRange(l.control, column, at, at+1000)
		default:
			m.Set(l.control, column, at, has)
		}
		m.count++
	}
}
