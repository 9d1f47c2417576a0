package main

import (
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/tidemark-go/tidemark/codec"
)

// An exponential histogram of OpenTelemetry is a native histogram of Prometheus. Ingest stores it as the fields
// NAME:scale, NAME:zeros, NAME:zero_threshold, and the buckets as the texts NAME:positive and NAME:negative:
// OFFSET:COUNT,COUNT….
const (
	scaleSuffix     = ":scale"
	zerosSuffix     = ":zeros"
	thresholdSuffix = ":zero_threshold"
	positiveSuffix  = ":positive"
	negativeSuffix  = ":negative"
	deltaSuffix     = ":delta"
)

// mostBuckets is how many buckets a text may have, as ingest stores them.
const mostBuckets = 4 << 10

// nativeHistogram returns the histogram of a name in a point. Finer scales than Prometheus has are made coarser. It is
// nil if the point has none, for a scale below those of Prometheus, and for fields that contradict each other.
func nativeHistogram(fields codec.Record, name string) *histogram.FloatHistogram {
	const coarsest, finest = int64(histogram.ExponentialSchemaMin), int64(histogram.ExponentialSchemaMax)
	scale, ok := fields.Int(name + scaleSuffix)
	if !ok || scale < coarsest {
		return nil
	}
	number := func(suffix string, unset float64) float64 {
		v, some := fields.Lookup(name + suffix)
		if !some {
			return unset
		}
		x, isNumber := v.Number()
		ok = ok && isNumber
		return x
	}
	buckets := func(suffix string) ([]histogram.Span, []float64) {
		v, some := fields.Lookup(name + suffix)
		if !some {
			return nil, nil
		}
		text, isText := v.Str()
		span, counts, valid := parseBuckets(text, max(0, scale-finest))
		ok = ok && isText && valid
		return []histogram.Span{span}, counts
	}
	h := &histogram.FloatHistogram{
		Schema:        int32(min(scale, finest)),
		Count:         number(countSuffix, math.NaN()),
		Sum:           number(":sum", math.NaN()), // unknown, for example if values may be negative
		ZeroCount:     number(zerosSuffix, 0),
		ZeroThreshold: number(thresholdSuffix, 0),
	}
	h.PositiveSpans, h.PositiveBuckets = buckets(positiveSuffix)
	h.NegativeSpans, h.NegativeBuckets = buckets(negativeSuffix)
	if strings.HasSuffix(name, deltaSuffix) {
		h.CounterResetHint = histogram.GaugeType // it does not continue the one before
	}
	if !ok || math.IsNaN(h.Count) || math.IsNaN(h.ZeroCount) || checkHistogram(h, h.ZeroThreshold) != nil {
		return nil
	}
	return h
}

// parseBuckets returns the buckets of a text. Each coarser step makes one bucket of two. The bucket with the index 0
// has the values above 1 in OpenTelemetry, and those up to 1 in Prometheus.
func parseBuckets(text string, coarser int64) (span histogram.Span, counts []float64, ok bool) {
	offset, list, _ := strings.Cut(text, ":")
	first, err := strconv.ParseInt(offset, 10, 32)
	if err != nil {
		return span, nil, false
	}
	from, i := first>>coarser, first
	for part := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil || i-first == mostBuckets || i>>coarser >= math.MaxInt32 {
			return span, nil, false
		}
		if i>>coarser-from == int64(len(counts)) {
			counts = append(counts, 0)
		}
		counts[len(counts)-1] += float64(n)
		i++
	}
	return histogram.Span{Offset: int32(from + 1), Length: uint32(len(counts))}, counts, true
}
