package main

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	dto "github.com/prometheus/prometheus/prompb/io/prometheus/client"
)

// observed is what one route has seen: the values of a histogram with bounds, and of one with buckets of powers. It
// begins anew when its program does.
type observed struct {
	route              string
	under              []uint64 // cumulative, for each bound, and then all
	zeros              uint64
	positive, negative map[int32]uint64 // by the index of OpenTelemetry
	sum, powerSum      float64
}

var seenBounds = []float64{0.005, 0.1, 1, 2.5, 1e6}

const (
	seenScale     = 3
	seenThreshold = 1e-9
)

// see adds a value to both histograms.
func (o *observed) see(x float64) {
	for i, b := range seenBounds {
		if x <= b {
			o.under[i]++
		}
	}
	o.under[len(seenBounds)]++
	o.sum += x
	x -= 0.05
	o.powerSum += x
	index := int32(math.Ceil(math.Log2(math.Abs(x))*(1<<seenScale))) - 1
	switch {
	case math.Abs(x) <= seenThreshold:
		o.zeros++
	case x > 0:
		o.positive[index]++
	default:
		o.negative[index]++
	}
}

// moment is what all routes have seen until a time.
type moment struct {
	ms     int64
	routes []observed
}

// The moments at which the program starts again, and the last one.
const again, last, never = 20, 29, 30

// moments returns what a program has seen at some times until now.
func moments() (all []moment) {
	random := rand.New(rand.NewPCG(7, 9))
	end := time.Now().UnixMilli() / 1000 * 1000
	var now []observed
	for k := range last + 1 {
		if k == 0 || k == again {
			now = nil
			for _, route := range []string{"/a", "/b"} {
				now = append(now, observed{route: route, under: make([]uint64, len(seenBounds)+1), positive: map[int32]uint64{}, negative: map[int32]uint64{}})
			}
		}
		m := moment{ms: end - int64(last-k)*15_000}
		for i := range now {
			for range 20 + random.IntN(30) {
				now[i].see(math.Exp(random.NormFloat64()*2 - 1 + float64(i)))
			}
			now[i].see(0.05) // a zero
			o := now[i]
			o.under, o.positive, o.negative = slices.Clone(o.under), maps.Clone(o.positive), maps.Clone(o.negative)
			m.routes = append(m.routes, o)
		}
		all = append(all, m)
	}
	return all
}

// exposed returns a moment as Prometheus scrapes it, in protobuf.
func (m moment) exposed(t *testing.T) []byte {
	classic := &dto.MetricFamily{Name: "lat", Type: dto.MetricType_HISTOGRAM}
	native := &dto.MetricFamily{Name: "size", Type: dto.MetricType_HISTOGRAM}
	for _, o := range m.routes {
		of := []dto.LabelPair{{Name: "route", Value: o.route}}
		count := o.under[len(seenBounds)]
		h := &dto.Histogram{SampleCount: count, SampleSum: o.sum}
		for i, b := range seenBounds {
			h.Bucket = append(h.Bucket, dto.Bucket{CumulativeCount: o.under[i], UpperBound: b})
		}
		classic.Metric = append(classic.Metric, dto.Metric{Label: of, Histogram: h, TimestampMs: m.ms})
		h = &dto.Histogram{SampleCount: count, SampleSum: o.powerSum, Schema: seenScale, ZeroThreshold: seenThreshold, ZeroCount: o.zeros}
		h.PositiveSpan, h.PositiveDelta = spansOf(o.positive)
		h.NegativeSpan, h.NegativeDelta = spansOf(o.negative)
		native.Metric = append(native.Metric, dto.Metric{Label: of, Histogram: h, TimestampMs: m.ms})
	}
	var body []byte
	for _, family := range []*dto.MetricFamily{classic, native} {
		message, err := family.Marshal()
		if err != nil {
			t.Error(err)
		}
		body = append(binary.AppendUvarint(body, uint64(len(message))), message...)
	}
	return body
}

// spansOf returns buckets as Prometheus has them.
func spansOf(buckets map[int32]uint64) (spans []dto.BucketSpan, deltas []int64) {
	next, last := int32(0), int64(0)
	for _, i := range slices.Sorted(maps.Keys(buckets)) {
		at := i + 1
		if len(spans) == 0 || at != next {
			spans = append(spans, dto.BucketSpan{Offset: at - next})
		}
		spans[len(spans)-1].Length++
		deltas = append(deltas, int64(buckets[i])-last)
		next, last = at+1, int64(buckets[i])
	}
	return spans, deltas
}

// otlp returns all moments as a request of OpenTelemetry in JSON.
func otlp(t *testing.T, all []moment) []byte {
	type object = map[string]any
	texts := func(counts []uint64) (out []string) {
		for _, n := range counts {
			out = append(out, strconv.FormatUint(n, 10))
		}
		return out
	}
	dense := func(buckets map[int32]uint64) object {
		indexes := slices.Sorted(maps.Keys(buckets))
		if len(indexes) == 0 {
			return object{}
		}
		counts := make([]uint64, indexes[len(indexes)-1]-indexes[0]+1)
		for i, n := range buckets {
			counts[i-indexes[0]] = n
		}
		return object{"offset": indexes[0], "bucketCounts": texts(counts)}
	}
	var classic, native []object
	for _, m := range all {
		for _, o := range m.routes {
			own := func() object {
				return object{
					"timeUnixNano": strconv.FormatInt(m.ms*1e6, 10), "count": strconv.FormatUint(o.under[len(seenBounds)], 10),
					"attributes": []object{{"key": "route", "value": object{"stringValue": o.route}}},
				}
			}
			h := own()
			counts, last := []uint64(nil), uint64(0)
			for _, n := range o.under {
				counts, last = append(counts, n-last), n
			}
			h["sum"], h["explicitBounds"], h["bucketCounts"] = o.sum, seenBounds, texts(counts)
			classic = append(classic, h)
			h = own()
			h["sum"], h["scale"], h["zeroThreshold"], h["zeroCount"] = o.powerSum, seenScale, seenThreshold, strconv.FormatUint(o.zeros, 10)
			h["positive"], h["negative"] = dense(o.positive), dense(o.negative)
			native = append(native, h)
		}
	}
	const cumulative = 2
	body, err := json.Marshal(object{"resourceMetrics": []object{{"scopeMetrics": []object{{"metrics": []object{
		{"name": "lat", "histogram": object{"aggregationTemporality": cumulative, "dataPoints": classic}},
		{"name": "size", "exponentialHistogram": object{"aggregationTemporality": cumulative, "dataPoints": native}},
	}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}
