package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/cockroachdb/pebble/v2"
)

// The distance of samples: about a four-thousandth of a table, but not so small that the estimate between two samples
// becomes a guess. The estimate counts the blocks of files, of 4 KiB.
const (
	sampleShare = 4000
	sampleBytes = 64 << 10
)

// flushBytes is how many bytes may be in memory only, where the estimate does not see them.
const flushBytes = 1 << 20

func (e *Engine) sampleRowKeys(ctx context.Context, req *bigtablepb.SampleRowKeysRequest) ([]*bigtablepb.SampleRowKeysResponse, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	at, err := e.target(req.GetTableName(), req.GetAuthorizedViewName(), req.GetMaterializedViewName())
	if err != nil {
		return nil, err
	}
	if e.fault.err() == nil && e.db.Metrics().MemTable.Size > flushBytes {
		if err := e.flush(ctx); err != nil {
			return nil, e.readError(err)
		}
	}
	lower, upper := tableRange(at.table.id)
	covered, end := []span{{lower, upper}}, at.view.end()
	switch r := req.GetRowRange(); {
	case r != nil:
		if covered, err = rowSpans(at.table.id, &bigtablepb.RowSet{RowRanges: []*bigtablepb.RowRange{r}}, at.view); err != nil {
			return nil, err
		}
		last := cmp.Or(string(r.GetEndKeyOpen()), string(r.GetEndKeyClosed()))
		if last != "" && (len(end) == 0 || last < string(end)) {
			end = []byte(last)
		}
	case at.view != nil:
		covered = at.view.spans(at.table.id)
	}
	whole, err := e.diskUsage(covered)
	if err != nil {
		return nil, err
	}
	keys, err := e.fileStarts(slices.Clone(at.table.schema.Load().splits), lower, upper)
	if err != nil {
		return nil, err
	}
	for _, s := range covered {
		if keys, err = e.divide(ctx, keys, s, max(sampleBytes, whole/sampleShare)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	// A response through a view must show neither keys nor sizes outside the view.
	keys = slices.DeleteFunc(keys, func(k []byte) bool {
		return len(k) == 0 || bytes.Equal(k, end) || len(intersectSpans(covered, []span{rowSpan(at.table.id, k)})) == 0
	})
	out := make([]*bigtablepb.SampleRowKeysResponse, 0, len(keys)+1)
	offset := int64(0)
	for i := 0; i <= len(keys); i++ {
		sample := &bigtablepb.SampleRowKeysResponse{RowKey: end}
		to := upper
		if i < len(keys) {
			sample.RowKey = keys[i]
			to = appendRow(nil, at.table.id, keys[i])
		}
		size, err := e.diskUsage(intersectSpans(covered, []span{{lower, to}}))
		if err != nil {
			return nil, err
		}
		offset = max(offset, size) // both are estimates
		sample.OffsetBytes = offset
		out = append(out, sample)
	}
	return out, nil
}

// fileStarts appends the keys of a table at which files begin.
func (e *Engine) fileStarts(keys [][]byte, lower, upper []byte) ([][]byte, error) {
	levels, err := e.db.SSTables()
	if err != nil {
		return nil, e.readError(err)
	}
	for _, level := range levels {
		for _, file := range level {
			start := file.Smallest.UserKey
			if bytes.Compare(start, lower) <= 0 || bytes.Compare(start, upper) >= 0 {
				continue
			}
			if prefix, err := rowPrefix(start); err == nil {
				keys = append(keys, appendRowKey(nil, prefix))
			}
		}
	}
	return keys, nil
}

// divide appends keys of rows that cut a span into parts of between half of step and step bytes, as far as its rows
// allow.
func (e *Engine) divide(ctx context.Context, keys [][]byte, s span, step int64) ([][]byte, error) {
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: s.lower, UpperBound: s.upper})
	if err != nil {
		return keys, e.readError(err)
	}
	defer func() { _ = it.Close() }()
	d := divider{e: e, it: it, step: step}
	if err := d.divide(ctx, s); err != nil {
		return keys, e.readError(err)
	}
	since := int64(0)
	for _, p := range d.parts {
		if since += p.size; p.end != nil && since >= step/2 {
			keys = append(keys, p.end)
			since = 0
		}
	}
	return keys, e.readError(it.Error())
}

// divider halves a span repeatedly until its parts are small.
type divider struct {
	e     *Engine
	it    *pebble.Iterator
	step  int64
	parts []part
}

// part is a part of a span, and the key of the row at which the next part begins.
type part struct {
	size int64
	end  []byte
}

func (d *divider) divide(ctx context.Context, s span) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	size, err := d.e.diskUsage([]span{s})
	if err != nil {
		return err
	}
	mid, err := d.middle(s, size)
	if err != nil {
		return err
	}
	if mid == nil {
		d.parts = append(d.parts, part{size: size})
		return nil
	}
	if err := d.divide(ctx, span{s.lower, mid}); err != nil {
		return err
	}
	d.parts[len(d.parts)-1].end = appendRowKey(nil, mid)
	return d.divide(ctx, span{mid, s.upper})
}

// middle returns the prefix of a row in a span that has rows before it, or nil if the span is not to be cut. It takes
// the middle between the bytes of the first and the last key. So each half has a row, and repeated halving finds where
// the rows are.
func (d *divider) middle(s span, size int64) ([]byte, error) {
	if size <= d.step || !d.it.SeekGE(s.lower) {
		return nil, nil
	}
	first, err := rowPrefix(bytes.Clone(d.it.Key()))
	if err != nil || bytes.Compare(first, s.upper) >= 0 || !d.it.SeekLT(s.upper) {
		return nil, err
	}
	last, err := rowPrefix(bytes.Clone(d.it.Key()))
	if err != nil || bytes.Compare(last, first) <= 0 {
		return nil, err
	}
	if !d.it.SeekGE(between(first, last)) {
		return last, nil
	}
	mid, err := rowPrefix(bytes.Clone(d.it.Key()))
	if bytes.Equal(mid, first) { // the middle was within one row
		mid = last
	}
	return mid, err
}

// between returns a key greater than low and at most high, about in the middle; low must be less than high.
func between(low, high []byte) []byte {
	same := 0
	for same < len(low) && low[same] == high[same] {
		same++
	}
	word := func(b []byte) uint64 {
		var w [8]byte
		copy(w[:], b[same:])
		return binary.BigEndian.Uint64(w[:])
	}
	from, to := word(low), word(high)
	mid := from + (to-from)/2
	if mid <= from {
		return high
	}
	return binary.BigEndian.AppendUint64(bytes.Clone(high[:same]), mid)
}

// diskUsage estimates the bytes of spans.
func (e *Engine) diskUsage(spans []span) (int64, error) {
	var sum uint64
	for _, s := range spans {
		n, err := e.db.EstimateDiskUsage(s.lower, s.upper)
		if err != nil {
			return 0, e.readError(err)
		}
		sum += n
	}
	return int64(min(sum, 1<<62)), nil
}
