package rowfilter

import (
	"bytes"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// span is a range of byte strings from start (inclusive) to end (exclusive). A nil end means no bound.
type span struct {
	start, end []byte
}

// after returns the first byte string after b.
func after(b []byte) []byte { return append(bytes.Clone(b), 0) }

func (s span) contains(b []byte) bool {
	return bytes.Compare(b, s.start) >= 0 && (s.end == nil || bytes.Compare(b, s.end) < 0)
}

func (s span) empty() bool { return s.end != nil && bytes.Compare(s.start, s.end) >= 0 }

func (s span) intersect(o span) span {
	if bytes.Compare(o.start, s.start) > 0 {
		s.start = o.start
	}
	if s.end == nil || o.end != nil && bytes.Compare(o.end, s.end) < 0 {
		s.end = o.end
	}
	return s
}

// hull returns the smallest span that contains both.
func (s span) hull(o span) span {
	if bytes.Compare(o.start, s.start) < 0 {
		s.start = o.start
	}
	if s.end != nil && (o.end == nil || bytes.Compare(o.end, s.end) > 0) {
		s.end = o.end
	}
	return s
}

// bound is one end of a range message: its value, whether it is set, and whether it is exclusive.
type bound struct {
	at   []byte
	set  bool
	open bool
}

// newSpan returns the span between two ends of a range message. An empty or unset end means no bound.
func newSpan(field string, start, end bound) (span, error) {
	var s span
	if start.set {
		if s.start = bytes.Clone(start.at); start.open {
			s.start = after(start.at)
		}
	}
	if end.set && len(end.at) > 0 {
		if bytes.Compare(start.at, end.at) > 0 {
			return s, invalid(field, "the start of the range must be less than its end")
		}
		if s.end = bytes.Clone(end.at); !end.open {
			s.end = after(end.at)
		}
	}
	return s, nil
}

func compileColumnRange(m *btpb.ColumnRange) (node, error) {
	if m.GetFamilyName() == "" {
		return nil, invalid("column_range_filter", "family_name must be set")
	}
	var start, end bound
	switch q := m.GetStartQualifier().(type) {
	case *btpb.ColumnRange_StartQualifierClosed:
		start = bound{at: q.StartQualifierClosed, set: true}
	case *btpb.ColumnRange_StartQualifierOpen:
		start = bound{at: q.StartQualifierOpen, set: true, open: true}
	}
	switch q := m.GetEndQualifier().(type) {
	case *btpb.ColumnRange_EndQualifierClosed:
		end = bound{at: q.EndQualifierClosed, set: true}
	case *btpb.ColumnRange_EndQualifierOpen:
		end = bound{at: q.EndQualifierOpen, set: true, open: true}
	}
	s, err := newSpan("column_range_filter", start, end)
	return &columnRange{family: m.GetFamilyName(), qualifiers: s}, err
}

func compileValueRange(m *btpb.ValueRange) (node, error) {
	var start, end bound
	switch v := m.GetStartValue().(type) {
	case *btpb.ValueRange_StartValueClosed:
		start = bound{at: v.StartValueClosed, set: true}
	case *btpb.ValueRange_StartValueOpen:
		start = bound{at: v.StartValueOpen, set: true, open: true}
	}
	switch v := m.GetEndValue().(type) {
	case *btpb.ValueRange_EndValueClosed:
		end = bound{at: v.EndValueClosed, set: true}
	case *btpb.ValueRange_EndValueOpen:
		end = bound{at: v.EndValueOpen, set: true, open: true}
	}
	s, err := newSpan("value_range_filter", start, end)
	return valueRange{s}, err
}
