package engine

import (
	"encoding/binary"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
)

// aggregate is how a family combines the inputs of a cell.
type aggregate uint8

const (
	aggregateNone aggregate = iota // the family holds plain bytes
	aggregateSum
	aggregateMin
	aggregateMax
)

// aggregateLen is the length of an aggregate cell's value: an int64, big-endian.
const aggregateLen = 8

// aggregateOf checks the value type of a family and returns its aggregation. A type that does not aggregate is only
// stored: it tells readers how to interpret the bytes of a cell.
func aggregateOf(t *adminpb.Type) (aggregate, error) {
	switch t.GetKind().(type) {
	case nil, *adminpb.Type_BytesType, *adminpb.Type_StringType, *adminpb.Type_Int64Type:
		return aggregateNone, nil
	case *adminpb.Type_AggregateType:
	default:
		return aggregateNone, invalidf("Field value_type must be a bytes, string, int64 or aggregate type, or unset")
	}
	a := t.GetAggregateType()
	var out aggregate
	switch a.GetAggregator().(type) {
	case *adminpb.Type_Aggregate_Sum_:
		out = aggregateSum
	case *adminpb.Type_Aggregate_Min_:
		out = aggregateMin
	case *adminpb.Type_Aggregate_Max_:
		out = aggregateMax
	case *adminpb.Type_Aggregate_HllppUniqueCount:
		return aggregateNone, unimplementedf("Aggregator hllpp_unique_count is not offered")
	default:
		return aggregateNone, invalidf("Field value_type.aggregate_type.aggregator must be set")
	}
	input, ok := a.GetInputType().GetKind().(*adminpb.Type_Int64Type)
	if !ok {
		return aggregateNone, invalidf("Field value_type.aggregate_type.input_type must be int64")
	}
	switch e := input.Int64Type.GetEncoding().GetEncoding().(type) {
	case nil, *adminpb.Type_Int64_Encoding_BigEndianBytes_:
	default:
		return aggregateNone, unimplementedf("Int64 encoding %T is not offered", e)
	}
	return out, nil
}

// storedType returns a copy of a checked value type, or nil if none is set. For an aggregate it fills in the
// output-only state type, as the service does.
func storedType(t *adminpb.Type) *adminpb.Type {
	if t.GetKind() == nil {
		return nil
	}
	t = proto.CloneOf(t)
	if t.GetAggregateType() == nil {
		return t
	}
	t.GetAggregateType().StateType = &adminpb.Type{Kind: &adminpb.Type_Int64Type{Int64Type: &adminpb.Type_Int64{
		Encoding: &adminpb.Type_Int64_Encoding{Encoding: &adminpb.Type_Int64_Encoding_BigEndianBytes_{
			BigEndianBytes: &adminpb.Type_Int64_Encoding_BigEndianBytes{},
		}},
	}}}
	return t
}

// fold returns the cell's new state. A sum wraps around at the limits of int64.
func (a aggregate) fold(state, input int64) int64 {
	switch a {
	case aggregateMin:
		return min(state, input)
	case aggregateMax:
		return max(state, input)
	}
	return state + input
}

func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

func decodeInt64(b []byte) (int64, bool) {
	if len(b) != aggregateLen {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(b)), true
}

// accumulation is a checked and decoded AddToCell or MergeToCell.
type accumulation struct {
	family    *family
	qualifier []byte
	timestamp int64
	input     int64
	null      bool // it changes nothing
}

// addition checks an AddToCell.
func (s *schema) addition(m *bigtablepb.Mutation_AddToCell) (accumulation, error) {
	a, err := s.accumulation("AddToCell", m.GetFamilyName(), m.GetColumnQualifier(), m.GetTimestamp())
	if err != nil {
		return a, err
	}
	v, ok := m.GetInput().GetKind().(*bigtablepb.Value_IntValue)
	if !ok {
		return a, invalidf("AddToCell: input must be an int_value, as the family's input type asks for")
	}
	a.input = v.IntValue
	return a, nil
}

// merge checks a MergeToCell.
func (s *schema) merge(m *bigtablepb.Mutation_MergeToCell) (accumulation, error) {
	a, err := s.accumulation("MergeToCell", m.GetFamilyName(), m.GetColumnQualifier(), m.GetTimestamp())
	if err != nil {
		return a, err
	}
	if a.null = m.Input != nil && m.Input.Kind == nil; a.null {
		return a, nil
	}
	raw, ok := m.GetInput().GetKind().(*bigtablepb.Value_RawValue)
	if !ok {
		return a, invalidf("MergeToCell: input must be a raw_value")
	}
	if a.input, ok = decodeInt64(raw.RawValue); !ok {
		return a, invalidf("MergeToCell: input has %d bytes, want %d", len(raw.RawValue), aggregateLen)
	}
	return a, nil
}

func (s *schema) accumulation(verb, name string, qualifier, timestamp *bigtablepb.Value) (accumulation, error) {
	f := s.families[name]
	if f == nil {
		return accumulation{}, unknownFamily(name)
	}
	if f.aggregate == aggregateNone {
		return accumulation{}, invalidf("%s: family %q is not an aggregate family", verb, name)
	}
	q, ok := qualifier.GetKind().(*bigtablepb.Value_RawValue)
	if !ok {
		return accumulation{}, invalidf("%s: column_qualifier must be a raw_value", verb)
	}
	if err := checkQualifier(q.RawValue); err != nil {
		return accumulation{}, err
	}
	ts, ok := timestamp.GetKind().(*bigtablepb.Value_RawTimestampMicros)
	if !ok {
		return accumulation{}, invalidf("%s: timestamp must be a raw_timestamp_micros", verb)
	}
	if err := s.checkTimestamp(ts.RawTimestampMicros); err != nil {
		return accumulation{}, err
	}
	return accumulation{family: f, qualifier: q.RawValue, timestamp: ts.RawTimestampMicros}, nil
}
