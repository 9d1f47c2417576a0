package main

import (
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/tidemark-go/tidemark/codec"
)

// Ingest stores a histogram of OpenTelemetry as fields of a point: NAME:count, NAME:sum, and for each bound
// NAME:le:BOUND with how many values are at most that. They are shown as Prometheus shows a histogram: the count and
// the sum are metrics as all fields are, and the buckets are the series NAME_bucket with the label le. An exponential
// histogram is a native one: see nativehistogram.go.
const (
	bucketSuffix = "_bucket"
	boundMark    = ":le:"
	countSuffix  = ":count"
)

// histogramName names a histogram of a dataset.
type histogramName struct {
	field  string // with which the names of its fields begin
	native bool
}

// metric returns the name of the metric of a histogram: that of its buckets, or of the native histogram.
func (h histogramName) metric(m *mapped) string {
	if h.native {
		return m.metricOf(h.field)
	}
	return m.metricOf(h.field) + bucketSuffix
}

// shownAs returns the field that stands for a histogram in errors about names that clash. A native histogram may have
// the name of a number: they are samples of one series.
func (h histogramName) shownAs() string {
	if h.native {
		return h.field
	}
	return h.field + strings.TrimSuffix(boundMark, ":")
}

// bucketOf returns the name of the histogram whose bucket a field is, and the bound as text. Only bounds as ingest
// writes them are bounds, so two fields of a histogram never have the same one.
func bucketOf(field string) (name, bound string, ok bool) {
	i := strings.LastIndex(field, boundMark)
	if i <= 0 {
		return "", "", false
	}
	name, text := field[:i], field[i+len(boundMark):]
	if text == "+Inf" || text == "-Inf" {
		return name, text, true
	}
	n, _ := codec.ParseNumber(text)
	x, ok := n.Number()
	if !ok || strconv.FormatFloat(x, 'g', -1, 64) != text {
		return "", "", false
	}
	return name, labels.FormatOpenMetricsFloat(x), true
}

// histogramOf returns the histogram that a field of a point belongs to, if the field is shown only as a part of that.
func histogramOf(fields codec.Record, field string, v codec.Value) (h histogramName, ok bool) {
	if name, _, isBucket := bucketOf(field); isBucket {
		if _, isNumber := v.Number(); isNumber {
			h = histogramName{field: name}
		}
	} else if i := strings.LastIndexByte(field, ':'); i > 0 {
		switch field[i:] {
		case scaleSuffix, zerosSuffix, thresholdSuffix, positiveSuffix, negativeSuffix:
			if _, isNative := fields.Int(field[:i] + scaleSuffix); isNative {
				h = histogramName{field[:i], true}
			}
		}
	}
	if h.field == "" {
		return h, false
	}
	_, ok = fields.Number(h.field + countSuffix)
	return h, ok
}

// addHistogram adds the metric of a histogram.
func (m *mapped) addHistogram(f *fields, h histogramName) {
	name := h.metric(m)
	other, taken := f.histograms[name]
	number := f.numbers[name]
	switch {
	case taken && other.shownAs() != h.shownAs():
		f.clash[name] = bothFields(other.shownAs(), h.shownAs(), m.of)
	case number != nil && number.field != h.shownAs():
		f.clash[name] = bothFields(number.field, h.shownAs(), m.of)
	}
	f.histograms[name] = h
}

// mayBeBuckets reports whether the metric has the name of buckets.
func (m *metric) mayBeBuckets() bool {
	return strings.HasSuffix(m.name, bucketSuffix) && len(m.name) > len(m.mapped.name)+len(bucketSuffix)
}

// buckets calls yield with each bucket of a point that belongs to the metric: the field, its histogram and the value.
// The bucket without a bound is the count. Known are fields that are buckets.
func (m *metric) buckets(fields codec.Record, known map[string]*bucket, yield func(field, histogram string, x float64) error) error {
	metric, last := strings.TrimSuffix(m.name, bucketSuffix), ""
	for field, v := range fields.All() {
		i := strings.LastIndex(field, boundMark)
		if i <= 0 || !m.isMetricOf(metric, field[:i]) {
			continue
		}
		count, isHistogram := fields.Number(field[:i] + countSuffix)
		x, isNumber := v.Number()
		if !isHistogram || !isNumber {
			continue
		}
		if known[field] == nil {
			if _, _, ok := bucketOf(field); !ok {
				continue
			}
		}
		if field[:i] != last {
			last = field[:i]
			if err := yield(last+boundMark+"+Inf", last, count); err != nil {
				return err
			}
		}
		if strings.HasSuffix(field, boundMark+"+Inf") {
			continue // it is the count, which is shown already
		}
		if err := yield(field, last, x); err != nil {
			return err
		}
	}
	return nil
}

// withBound returns the labels of a bucket.
func (m *metric) withBound(ls labels.Labels, field string) labels.Labels {
	_, bound, _ := bucketOf(field)
	return labels.NewBuilder(ls).Set(m.takenLabels().label(model.BucketLabel), bound).Labels()
}

// bucketSeries are the series of the buckets of an entity. A series ends when a point of the histogram lacks its bound,
// so an entity never has the buckets of two sets of bounds at once, in spite of the lookback.
type bucketSeries struct {
	entity  *series
	byField map[string]*bucket
	list    []*selected
	since   int64 // time of the point before, which is the newer one
}

// bucket is the series of a bucket, and the time of its oldest sample so far.
type bucket struct {
	*selected
	since int64
}

func newBucketSeries(of *series) *bucketSeries {
	return &bucketSeries{entity: of, byField: map[string]*bucket{}, since: math.MaxInt64}
}

// add adds the buckets of a point, which is older than those before it. It calls found with their histograms.
func (s *bucketSeries) add(r *mappedRead, at int64, fields codec.Record, found func(histogram string)) error {
	if at == s.since {
		return nil // of several points within a millisecond, the newest remains
	}
	some := false
	err := r.metric.metric.buckets(fields, s.byField, func(field, histogram string, x float64) error {
		b := s.byField[field]
		if b == nil {
			if err := r.budget.takeSeries(1); err != nil {
				return err
			}
			ls := r.metric.withBound(s.entity.labels, field)
			b = &bucket{&selected{series: &series{labels: ls, entity: s.entity.entity, open: true}}, math.MaxInt64}
			s.byField[field] = b
			s.list = append(s.list, b.selected)
		}
		if b.since != s.since {
			if err := r.add(b.selected, s.since, ended); err != nil {
				return err
			}
		}
		some, b.since = true, at
		found(histogram)
		return r.add(b.selected, at, sample{float: x})
	})
	if some {
		s.since = at
	}
	return err
}

// withBuckets returns a series for each bucket of an entity's newest point, or the series as it is if that has none.
func (m *metric) withBuckets(one *series, newest codec.Record) (all []*series) {
	_ = m.buckets(newest, nil, func(field, _ string, _ float64) error { // it fails only if yield does
		all = append(all, &series{labels: m.withBound(one.labels, field), entity: one.entity, from: one.from})
		return nil
	})
	if all == nil {
		return []*series{one}
	}
	return all
}
