package rowfilter

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	maxDepth = 20
	maxBytes = 20480
	maxLabel = 15
)

var labelPattern = regexp.MustCompile(`\A[a-z0-9\-]+\z`)

// invalid returns the status of a refused filter, in the service's words.
func invalid(field, format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, "Error in field '"+field+"' : "+format, args...)
}

// compiler turns one message into nodes.
type compiler struct {
	sinks []*sink
	// conditions is the number of conditions around the current filter. Inside a condition, a sink is refused.
	conditions int
}

func (c *compiler) compile(f *btpb.RowFilter) (node, error) {
	// Check the depth first: measuring the size of a very deep message recurses as deeply.
	if !shallow(f, maxDepth) {
		return nil, invalid("filter", "filters are nested deeper than %d", maxDepth)
	}
	if n := proto.Size(f); n > maxBytes {
		return nil, invalid("filter", "filter has %d bytes, at most %d are allowed", n, maxBytes)
	}
	if copies(f) > maxCopies {
		return nil, invalid("interleave", "interleaves could return a cell more than %d times", maxCopies)
	}
	return c.filter(f)
}

// maxCopies bounds how often a filter may return one cell. Nested interleaves multiply: without a bound, a filter of a
// few hundred bytes could use up the memory.
const maxCopies = 10_000

// copies returns how often f may return a cell; the result is not exact above maxCopies.
func copies(f *btpb.RowFilter) int {
	n := 1
	switch t := f.GetFilter().(type) {
	case *btpb.RowFilter_Chain_:
		for _, sub := range t.Chain.GetFilters() {
			n = min(n*copies(sub), maxCopies+1)
		}
	case *btpb.RowFilter_Interleave_:
		n = 0
		for _, sub := range t.Interleave.GetFilters() {
			n = min(n+copies(sub), maxCopies+1)
		}
	case *btpb.RowFilter_Condition_:
		n = max(copies(t.Condition.GetTrueFilter()), copies(t.Condition.GetFalseFilter()))
	}
	return n
}

// shallow reports whether f has at most depth levels.
func shallow(f *btpb.RowFilter, depth int) bool {
	if depth == 0 {
		return false
	}
	return !slices.ContainsFunc(nested(f), func(sub *btpb.RowFilter) bool { return !shallow(sub, depth-1) })
}

// nested returns the filters of which a filter consists.
func nested(f *btpb.RowFilter) []*btpb.RowFilter {
	switch t := f.GetFilter().(type) {
	case *btpb.RowFilter_Chain_:
		return t.Chain.GetFilters()
	case *btpb.RowFilter_Interleave_:
		return t.Interleave.GetFilters()
	case *btpb.RowFilter_Condition_:
		c := t.Condition
		subs := []*btpb.RowFilter{c.GetPredicateFilter(), c.GetTrueFilter(), c.GetFalseFilter()}
		return slices.DeleteFunc(subs, func(sub *btpb.RowFilter) bool { return sub == nil })
	}
	return nil
}

func (c *compiler) filter(f *btpb.RowFilter) (node, error) {
	switch t := f.GetFilter().(type) {
	case nil:
		if len(f.ProtoReflect().GetUnknown()) > 0 { // a filter of a newer API must not pass everything
			return nil, status.Error(codes.Unimplemented, "Unknown row filter")
		}
		return passAll{}, nil
	case *btpb.RowFilter_Chain_:
		return c.chain(t.Chain)
	case *btpb.RowFilter_Interleave_:
		return c.interleave(t.Interleave)
	case *btpb.RowFilter_Condition_:
		return c.condition(t.Condition)
	case *btpb.RowFilter_Sink:
		if !t.Sink {
			return nil, invalid("sink", "must be true if set")
		}
		if c.conditions > 0 {
			return nil, invalid("condition filter predicate", "sink cannot be nested in a condition filter")
		}
		s := &sink{}
		c.sinks = append(c.sinks, s)
		return s, nil
	case *btpb.RowFilter_PassAllFilter:
		if !t.PassAllFilter {
			return nil, invalid("pass_all_filter", "must be true if set")
		}
		return passAll{}, nil
	case *btpb.RowFilter_BlockAllFilter:
		if !t.BlockAllFilter {
			return nil, invalid("block_all_filter", "must be true if set")
		}
		return blockAll{}, nil
	case *btpb.RowFilter_RowKeyRegexFilter:
		if len(t.RowKeyRegexFilter) == 0 {
			return nil, invalid("row_key_regex_filter", "argument must not be empty")
		}
		p, err := compilePattern("row_key_regex_filter", t.RowKeyRegexFilter)
		return &rowKeyPattern{p}, err
	case *btpb.RowFilter_RowSampleFilter:
		if !(t.RowSampleFilter > 0 && t.RowSampleFilter < 1) {
			return nil, invalid("row_sample_filter", "argument must be between 0.0 and 1.0")
		}
		return rowSample(t.RowSampleFilter), nil
	case *btpb.RowFilter_FamilyNameRegexFilter:
		if strings.Contains(t.FamilyNameRegexFilter, ":") {
			return nil, invalid("family_name_regex_filter", "argument must not contain ':'")
		}
		p, err := compilePattern("family_name_regex_filter", []byte(t.FamilyNameRegexFilter))
		if err != nil {
			return nil, err
		}
		return newFamilyPattern(p), nil
	case *btpb.RowFilter_ColumnQualifierRegexFilter:
		p, err := compilePattern("column_qualifier_regex_filter", t.ColumnQualifierRegexFilter)
		return &qualifierPattern{p}, err
	case *btpb.RowFilter_ColumnRangeFilter:
		return compileColumnRange(t.ColumnRangeFilter)
	case *btpb.RowFilter_TimestampRangeFilter:
		start, end := t.TimestampRangeFilter.GetStartTimestampMicros(), t.TimestampRangeFilter.GetEndTimestampMicros()
		if end != 0 && start > end {
			return nil, invalid("timestamp_range_filter", "start_timestamp_micros must be less than end_timestamp_micros")
		}
		return timestampRange{start, end}, nil
	case *btpb.RowFilter_ValueRegexFilter:
		p, err := compilePattern("value_regex_filter", t.ValueRegexFilter)
		return &valuePattern{p}, err
	case *btpb.RowFilter_ValueRangeFilter:
		return compileValueRange(t.ValueRangeFilter)
	case *btpb.RowFilter_ValueBitmaskFilter:
		mask := t.ValueBitmaskFilter.GetMask()
		if len(mask) == 0 {
			return nil, invalid("value_bitmask_filter", "mask must not be empty")
		}
		return valueMask(bytes.Clone(mask)), nil
	case *btpb.RowFilter_CellsPerRowOffsetFilter:
		if t.CellsPerRowOffsetFilter < 0 {
			return nil, invalid("cells_per_row_offset_filter", "argument must be >= 0")
		}
		return rowOffset(t.CellsPerRowOffsetFilter), nil
	case *btpb.RowFilter_CellsPerRowLimitFilter:
		if t.CellsPerRowLimitFilter <= 0 {
			return nil, invalid("cells_per_row_limit_filter", "argument must be > 0")
		}
		return rowLimit(t.CellsPerRowLimitFilter), nil
	case *btpb.RowFilter_CellsPerColumnLimitFilter:
		if t.CellsPerColumnLimitFilter <= 0 {
			return nil, invalid("cells_per_column_limit_filter", "argument must be > 0")
		}
		return columnLimit(t.CellsPerColumnLimitFilter), nil
	case *btpb.RowFilter_StripValueTransformer:
		if !t.StripValueTransformer {
			return nil, invalid("strip_value_transformer", "must be true if set")
		}
		return stripValue{}, nil
	case *btpb.RowFilter_ApplyLabelTransformer:
		if !labelPattern.MatchString(t.ApplyLabelTransformer) {
			return nil, invalid("apply_label_transformer", `must match RE2([a-z0-9\-]+), but found %q`,
				t.ApplyLabelTransformer)
		}
		if len(t.ApplyLabelTransformer) > maxLabel {
			return nil, invalid("apply_label_transformer", "must have at most %d characters, but found %q",
				maxLabel, t.ApplyLabelTransformer)
		}
		return applyLabel{t.ApplyLabelTransformer}, nil
	}
	return nil, status.Errorf(codes.Unimplemented, "Unknown row filter %T", f.GetFilter())
}

func (c *compiler) chain(m *btpb.RowFilter_Chain) (node, error) {
	if len(m.GetFilters()) < 2 {
		return nil, invalid("chain", "Chain must contain at least two RowFilters")
	}
	out, labelled := chain(nil), 0
	for _, sub := range m.GetFilters() {
		if hasLabel(sub) {
			labelled++
		}
		n, err := c.filter(sub)
		if err != nil {
			return nil, err
		}
		if inner, ok := n.(chain); ok {
			out = append(out, inner...)
			continue
		}
		out = append(out, n)
	}
	if labelled > 1 {
		return nil, invalid("chain", "no more than one sub-filter may contain an apply_label_transformer")
	}
	return out, nil
}

func (c *compiler) interleave(m *btpb.RowFilter_Interleave) (node, error) {
	if len(m.GetFilters()) < 2 {
		return nil, invalid("interleave", "Interleave must contain at least two RowFilters")
	}
	out := &interleave{}
	for _, sub := range m.GetFilters() {
		n, err := c.filter(sub)
		if err != nil {
			return nil, err
		}
		out.subs = append(out.subs, n)
	}
	return out, nil
}

func (c *compiler) condition(m *btpb.RowFilter_Condition) (node, error) {
	if m.GetPredicateFilter() == nil {
		return nil, invalid("condition", "predicate_filter must be set")
	}
	if m.GetTrueFilter() == nil && m.GetFalseFilter() == nil {
		return nil, invalid("condition", "true_filter or false_filter must be set")
	}
	c.conditions++
	defer func() { c.conditions-- }()
	out := &condition{then: blockAll{}, otherwise: blockAll{}}
	var err error
	if out.predicate, err = c.filter(m.GetPredicateFilter()); err != nil {
		return nil, err
	}
	if m.GetTrueFilter() != nil {
		if out.then, err = c.filter(m.GetTrueFilter()); err != nil {
			return nil, err
		}
	}
	if m.GetFalseFilter() != nil {
		if out.otherwise, err = c.filter(m.GetFalseFilter()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// hasLabel reports whether f applies a label anywhere.
func hasLabel(f *btpb.RowFilter) bool {
	_, label := f.GetFilter().(*btpb.RowFilter_ApplyLabelTransformer)
	return label || slices.ContainsFunc(nested(f), hasLabel)
}
