package tsdb

import (
	"fmt"

	"cloud.google.com/go/bigtable"
)

// compareType returns how the kind of a family that the table has differs from the one that is needed, "" for not at all.
// No family can be converted.
func compareType(family string, want, have bigtable.Type) string {
	_, aggregate := have.(bigtable.AggregateType)
	switch {
	case want == nil && aggregate:
		return fmt.Sprintf("family %s: is an aggregate family, points need an ordinary one", family)
	case want == nil:
		return ""
	case !aggregate:
		return fmt.Sprintf("family %s: is an ordinary family, a rollup needs one of %s", family, typeName(want))
	case typeName(want) != typeName(have):
		return fmt.Sprintf("family %s: holds %s, a rollup needs one of %s", family, typeName(have), typeName(want))
	}
	return ""
}

// typeName returns what an aggregate family holds, in words.
func typeName(t bigtable.Type) string {
	a, _ := t.(bigtable.AggregateType)
	input := "other inputs"
	if _, ok := a.Input.(bigtable.Int64Type); ok {
		input = "int64"
	}
	switch a.Aggregator.(type) {
	case bigtable.SumAggregator:
		return "sums of " + input
	case bigtable.MinAggregator:
		return "minima of " + input
	case bigtable.MaxAggregator:
		return "maxima of " + input
	}
	return "another aggregate of " + input
}
