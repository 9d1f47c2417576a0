package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

// dataPoint is a data point of any kind.
type dataPoint struct {
	kind        string // of its metric; with its name and the attributes it identifies a stream, and is hashed
	attributes  []*commonpb.KeyValue
	start, time uint64 // in Unix nanoseconds; start is 0 if it is unknown or the kind has none
	flags       uint32
	// fields adds the values as fields, whose names begin with the metric's.
	fields func(b fieldBuilder) error
}

// dataPoints calls yield with each data point of a metric.
func dataPoints(m *metricspb.Metric, yield func(dataPoint) error) error {
	switch data := m.GetData().(type) {
	case *metricspb.Metric_Gauge:
		for _, p := range data.Gauge.GetDataPoints() {
			dp := dataPoint{"gauge", p.GetAttributes(), 0, p.GetTimeUnixNano(), p.GetFlags(), func(b fieldBuilder) error { return b.number("", p) }}
			if err := yield(dp); err != nil {
				return err
			}
		}
	case *metricspb.Metric_Sum:
		suffix, bad := "", checkTemporality(data.Sum.GetAggregationTemporality())
		switch {
		case isDelta(data.Sum.GetAggregationTemporality()):
			suffix = ":delta"
		case data.Sum.GetIsMonotonic():
			suffix = ":total"
		}
		for _, p := range data.Sum.GetDataPoints() {
			dp := dataPoint{"sum" + suffix, p.GetAttributes(), p.GetStartTimeUnixNano(), p.GetTimeUnixNano(), p.GetFlags(), func(b fieldBuilder) error {
				if bad == nil && data.Sum.GetIsMonotonic() && isNegative(p) {
					return badValue("a monotonic sum is negative")
				}
				return errors.Join(bad, b.number(suffix, p))
			}}
			if err := yield(dp); err != nil {
				return err
			}
		}
	case *metricspb.Metric_Histogram:
		bad, delta := checkTemporality(data.Histogram.GetAggregationTemporality()), isDelta(data.Histogram.GetAggregationTemporality())
		for _, p := range data.Histogram.GetDataPoints() {
			dp := dataPoint{kindOf("histogram", delta), p.GetAttributes(), p.GetStartTimeUnixNano(), p.GetTimeUnixNano(), p.GetFlags(), func(b fieldBuilder) error {
				return errors.Join(bad, b.as(delta).histogram(p))
			}}
			if err := yield(dp); err != nil {
				return err
			}
		}
	case *metricspb.Metric_ExponentialHistogram:
		bad, delta := checkTemporality(data.ExponentialHistogram.GetAggregationTemporality()), isDelta(data.ExponentialHistogram.GetAggregationTemporality())
		for _, p := range data.ExponentialHistogram.GetDataPoints() {
			dp := dataPoint{kindOf("exponential_histogram", delta), p.GetAttributes(), p.GetStartTimeUnixNano(), p.GetTimeUnixNano(), p.GetFlags(), func(b fieldBuilder) error {
				return errors.Join(bad, b.as(delta).exponential(p))
			}}
			if err := yield(dp); err != nil {
				return err
			}
		}
	case *metricspb.Metric_Summary:
		for _, p := range data.Summary.GetDataPoints() {
			dp := dataPoint{"summary", p.GetAttributes(), p.GetStartTimeUnixNano(), p.GetTimeUnixNano(), p.GetFlags(), func(b fieldBuilder) error { return b.summary(p) }}
			if err := yield(dp); err != nil {
				return err
			}
		}
	}
	return nil
}

func isDelta(t metricspb.AggregationTemporality) bool {
	return t == metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
}

func checkTemporality(t metricspb.AggregationTemporality) error {
	if !isDelta(t) && t != metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
		return badValue("its aggregation temporality is neither delta nor cumulative")
	}
	return nil
}

func isNegative(p *metricspb.NumberDataPoint) bool { return p.GetAsInt() < 0 || p.GetAsDouble() < 0 }

// badValue is the error of a data point whose values contradict the protocol, or cannot be stored.
func badValue(format string, args ...any) error {
	return &inbound.Error{Reason: "its values are not valid", Err: fmt.Errorf(format, args...)}
}

// timeOf returns the time of a data point.
func (dp dataPoint) timeOf() (inbound.Stamp, error) {
	switch {
	case dp.time == 0 || dp.time > math.MaxInt64:
		return inbound.Stamp{}, badValue("its time is %d; want nanoseconds since 1970 above 0", dp.time)
	case dp.start > dp.time:
		return inbound.Stamp{}, badValue("its start is after its time")
	}
	return inbound.Unix(int64(dp.time), time.Nanosecond), nil
}

// isEmpty reports whether the data point says that there is no value at its time.
func (dp dataPoint) isEmpty() bool {
	return dp.flags&uint32(metricspb.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK) != 0
}

// fieldBuilder adds the fields of one data point to a point.
type fieldBuilder struct {
	to    *inbound.PointBuilder
	name  string // the metric's
	start uint64
}

func (b fieldBuilder) as(delta bool) fieldBuilder {
	b.name = kindOf(b.name, delta)
	return b
}

// kindOf returns a name with the temporality, if it is delta.
func kindOf(name string, delta bool) string {
	if delta {
		return name + ":delta"
	}
	return name
}

func (b fieldBuilder) float(suffix string, v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return badValue("%s%s is %v, which is not stored", b.name, suffix, v)
	}
	return b.to.Field(b.name+suffix, codec.Float(v))
}

func (b fieldBuilder) count(suffix string, n uint64) error {
	return b.to.Field(b.name+suffix, codec.Uint(n))
}

// since adds the start of the interval that the values cover. A cumulative value was reset if it differs from the last
// one's.
func (b fieldBuilder) since() error {
	if b.start == 0 {
		return nil
	}
	return b.to.Field(b.name+":start", codec.Int(int64(b.start))) // not after the time, which is checked
}

// number adds the field of a gauge or a sum.
func (b fieldBuilder) number(suffix string, p *metricspb.NumberDataPoint) error {
	var err error
	switch v := p.GetValue().(type) {
	case *metricspb.NumberDataPoint_AsInt:
		err = b.to.Field(b.name+suffix, codec.Int(v.AsInt))
	case *metricspb.NumberDataPoint_AsDouble:
		err = b.float(suffix, v.AsDouble)
	default:
		err = badValue("it has no value")
	}
	return errors.Join(err, b.since())
}

// totals adds what all kinds of histograms have.
func (b fieldBuilder) totals(count uint64, sum, least, most *float64) error {
	if err := errors.Join(b.count(":count", count), b.since()); err != nil {
		return err
	}
	for _, f := range []struct {
		suffix string
		v      *float64
	}{{":sum", sum}, {":min", least}, {":max", most}} {
		if f.v == nil {
			continue
		}
		if err := b.float(f.suffix, *f.v); err != nil {
			return err
		}
	}
	return nil
}

// histogram adds a field for each bucket: how many values are at most its bound. The last bucket's would equal the
// count.
func (b fieldBuilder) histogram(p *metricspb.HistogramDataPoint) error {
	counts, bounds := p.GetBucketCounts(), p.GetExplicitBounds()
	if len(counts) != len(bounds)+1 && len(counts)+len(bounds) > 0 {
		return badValue("it has %d buckets and %d bounds", len(counts), len(bounds))
	}
	if len(bounds) > codec.MaxFields {
		return badValue("it has %d bounds, and %d is the most", len(bounds), codec.MaxFields)
	}
	if err := b.totals(p.GetCount(), p.Sum, p.Min, p.Max); err != nil {
		return err
	}
	sum := uint64(0)
	for i, n := range counts {
		if sum+n < sum || sum+n > p.GetCount() {
			return badValue("its buckets hold more values than its count of %d", p.GetCount())
		}
		sum += n
		if i == len(bounds) {
			break
		}
		if math.IsNaN(bounds[i]) || i > 0 && bounds[i] <= bounds[i-1] {
			return badValue("its bounds do not ascend")
		}
		if err := b.count(":le:"+strconv.FormatFloat(bounds[i], 'g', -1, 64), sum); err != nil {
			return err
		}
	}
	if len(counts) > 0 && sum != p.GetCount() {
		return badValue("its buckets hold %d values, and its count is %d", sum, p.GetCount())
	}
	return nil
}

// maxBuckets bounds the buckets of an exponential histogram: each takes at least two bytes of the 8 KiB of a point.
const maxBuckets = 4 << 10

// exponential adds the buckets as texts, because their number changes: the index of the first one, and the counts.
func (b fieldBuilder) exponential(p *metricspb.ExponentialHistogramDataPoint) error {
	if n := len(p.GetPositive().GetBucketCounts()) + len(p.GetNegative().GetBucketCounts()); n > maxBuckets {
		return badValue("it has %d buckets, and %d is the most", n, maxBuckets)
	}
	sum := p.GetZeroCount()
	err := errors.Join(b.totals(p.GetCount(), p.Sum, p.Min, p.Max), b.to.Field(b.name+":scale", codec.Int(int64(p.GetScale()))), b.count(":zeros", p.GetZeroCount()))
	if p.GetZeroThreshold() != 0 {
		err = errors.Join(err, b.float(":zero_threshold", p.GetZeroThreshold()))
	}
	for suffix, buckets := range map[string]*metricspb.ExponentialHistogramDataPoint_Buckets{":positive": p.GetPositive(), ":negative": p.GetNegative()} {
		for _, n := range buckets.GetBucketCounts() {
			if sum+n < sum {
				return badValue("its buckets hold more values than its count of %d", p.GetCount())
			}
			sum += n
		}
		if len(buckets.GetBucketCounts()) > 0 {
			err = errors.Join(err, b.to.Field(b.name+suffix, codec.Str(bucketText(buckets))))
		}
	}
	if sum != p.GetCount() {
		return badValue("its buckets hold %d values, and its count is %d", sum, p.GetCount())
	}
	return err
}

// bucketText returns buckets as "offset:count,count,…".
func bucketText(buckets *metricspb.ExponentialHistogramDataPoint_Buckets) string {
	var text strings.Builder
	text.WriteString(strconv.Itoa(int(buckets.GetOffset())))
	sep := byte(':')
	for _, n := range buckets.GetBucketCounts() {
		text.WriteByte(sep)
		text.WriteString(strconv.FormatUint(n, 10))
		sep = ','
	}
	return text.String()
}

// summary adds a field for each quantile.
func (b fieldBuilder) summary(p *metricspb.SummaryDataPoint) error {
	sum := p.GetSum()
	if err := b.totals(p.GetCount(), &sum, nil, nil); err != nil {
		return err
	}
	for _, q := range p.GetQuantileValues() {
		if math.IsNaN(q.GetValue()) { // of a summary without values in its window
			continue
		}
		if err := b.float(":q:"+strconv.FormatFloat(q.GetQuantile(), 'g', -1, 64), q.GetValue()); err != nil {
			return err
		}
	}
	return nil
}
