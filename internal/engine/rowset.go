package engine

import (
	"bytes"
	"slices"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

const (
	maxRowKey       = 4 << 10
	maxRowSetBytes  = 512 << 10
	rowSetItemBytes = 4 // overhead of a key or a range in the wire format
)

// span is a range of encoded keys that covers whole rows.
type span struct{ lower, upper []byte }

func (s span) empty() bool { return bytes.Compare(s.lower, s.upper) >= 0 }

// rowSpans turns the rows of a request into spans: sorted, not overlapping, and cut to the view. An empty row set means
// all rows; a set whose rows are all outside the view means no spans.
func rowSpans(table uint32, rows *bigtablepb.RowSet, v *view) ([]span, error) {
	size, err := checkRowSet(rows)
	if err != nil {
		return nil, err
	}
	lower, upper := tableRange(table)
	buf := make([]byte, 0, size) // of all keys, unless they need escapes
	encode := func(key []byte) []byte {
		from := len(buf)
		buf = appendRow(buf, table, key)
		return buf[from:len(buf):len(buf)]
	}
	spans := make([]span, 0, max(1, len(rows.GetRowKeys())+len(rows.GetRowRanges())))
	if len(rows.GetRowKeys()) == 0 && len(rows.GetRowRanges()) == 0 {
		spans = append(spans, span{lower, upper})
	}
	for _, key := range rows.GetRowKeys() {
		spans = append(spans, rowSpan(table, key))
	}
	for _, r := range rows.GetRowRanges() {
		s := span{lower, upper}
		switch k := r.GetStartKey().(type) {
		case *bigtablepb.RowRange_StartKeyClosed:
			s.lower = encode(k.StartKeyClosed)
		case *bigtablepb.RowRange_StartKeyOpen:
			s.lower = encode(k.StartKeyOpen)
			if len(k.StartKeyOpen) > 0 {
				s.lower = afterTerminator(s.lower)
			}
		}
		switch k := r.GetEndKey().(type) {
		case *bigtablepb.RowRange_EndKeyClosed:
			if len(k.EndKeyClosed) > 0 {
				s.upper = afterTerminator(encode(k.EndKeyClosed))
			}
		case *bigtablepb.RowRange_EndKeyOpen:
			if len(k.EndKeyOpen) > 0 {
				s.upper = encode(k.EndKeyOpen)
			}
		}
		if !s.empty() {
			spans = append(spans, s)
		}
	}
	spans = mergeSpans(spans)
	if v != nil {
		spans = intersectSpans(spans, v.spans(table))
	}
	return spans, nil
}

// rowSpan is the span of one row.
func rowSpan(table uint32, key []byte) span {
	lower := appendRow(make([]byte, 0, 2*(tablePrefixLen+len(key)+8)), table, key)
	n := len(lower)
	both := append(lower, lower...)
	return span{both[:n:n], afterTerminator(both[n:])}
}

// spans returns the part of a table that a view covers.
func (v *view) spans(table uint32) []span {
	_, end := tableRange(table)
	spans := make([]span, 0, len(v.prefixes))
	for _, p := range v.prefixes {
		s := span{appendEscaped(appendTable(nil, table), p), end}
		if len(p) > 0 {
			s.upper = rowfilter.PrefixEnd(appendEscaped(appendTable(nil, table), p))
		}
		spans = append(spans, s)
	}
	return mergeSpans(spans)
}

// mergeSpans sorts spans and joins those that touch, in place.
func mergeSpans(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortFunc(spans, func(a, b span) int { return bytes.Compare(a.lower, b.lower) })
	out := spans[:1]
	for _, s := range spans[1:] {
		last := &out[len(out)-1]
		if bytes.Compare(s.lower, last.upper) > 0 {
			out = append(out, s)
		} else if bytes.Compare(s.upper, last.upper) > 0 {
			last.upper = s.upper
		}
	}
	return out
}

// intersectSpans returns the intersection of two merged lists.
func intersectSpans(a, b []span) []span {
	var out []span
	for len(a) > 0 && len(b) > 0 {
		s := span{a[0].lower, a[0].upper}
		if bytes.Compare(b[0].lower, s.lower) > 0 {
			s.lower = b[0].lower
		}
		if bytes.Compare(b[0].upper, s.upper) < 0 {
			s.upper = b[0].upper
		}
		if !s.empty() {
			out = append(out, s)
		}
		if bytes.Compare(a[0].upper, b[0].upper) < 0 {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// checkRowSet refuses the row sets that the service refuses. It returns how many bytes the encoded keys of the ranges
// take without escapes.
func checkRowSet(rows *bigtablepb.RowSet) (encoded int, err error) {
	size := 0
	for i, key := range rows.GetRowKeys() {
		if len(key) == 0 {
			return 0, invalidf("Row key %d is empty", i)
		}
		size += len(key) + rowSetItemBytes
	}
	for i, r := range rows.GetRowRanges() {
		start, end := r.GetStartKeyClosed(), r.GetEndKeyClosed()
		if start == nil {
			start = r.GetStartKeyOpen()
		}
		if end == nil {
			end = r.GetEndKeyOpen()
		}
		if len(start) > 0 && len(end) > 0 && bytes.Compare(start, end) > 0 {
			return 0, invalidf("Row range %d: its start is after its end", i)
		}
		size += len(start) + len(end) + 2*rowSetItemBytes
		encoded += len(start) + len(end) + 2*rowOverhead
	}
	if size > maxRowSetBytes {
		return 0, invalidf("Row set has %d bytes, want at most %d", size, maxRowSetBytes)
	}
	return encoded, nil
}
