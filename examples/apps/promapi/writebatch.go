package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tidemark-go/tidemark/tsdb"
)

// writeBatch is the points of a remote write request, and what is wrong with the others.
type writeBatch struct {
	points  []tsdb.Point[sample]
	written []labels.Labels // of the series of samples
	refused int             // series, samples, histograms and exemplars
	why     error           // why the first one was refused
	symbols labels.ScratchBuilder
	entity  tsdb.Entity          // of the series at hand
	last    int64                // the time of its last sample
	some    bool                 // it has a sample
	seen    map[tsdb.Entity]bool // those that have points
	places  map[place]int        // of the points, once they are not in the order of their times
	again   map[int]written      // points that later ones replaced, by the index of these
	bytes   int64                // of the payloads, once it is asked for
}

// place is where a point is stored: a request can have one for each.
type place struct {
	entity tsdb.Entity
	time   int64 // in ms
}

func newWriteBatch() *writeBatch {
	return &writeBatch{symbols: labels.NewScratchBuilder(16), seen: map[tsdb.Entity]bool{}}
}

func (b *writeBatch) refuse(n int, err error) {
	b.refused += n
	if b.why == nil {
		b.why = err
	}
}

// begin begins a series, and reports whether its points can be stored.
func (b *writeBatch) begin(ls labels.Labels, n int) bool {
	if err := checkSeries(ls); err != nil {
		b.refuse(n, err)
		return false
	}
	b.entity, b.last, b.some = seriesEntity(samplesKind, ls), 0, false
	return true
}

// addSample adds a sample of the series at hand.
func (b *writeBatch) addSample(t int64, s sample) {
	b.add(b.entity, t, s)
	b.last, b.some = t, true
}

// add adds a point. It replaces one of the same series and time, wherever in the request that is: of two points with
// one key, either might win in the store.
func (b *writeBatch) add(e tsdb.Entity, t int64, s sample) {
	n := len(b.points)
	inOrder := b.places == nil && (n > 0 && b.points[n-1].Entity == e && b.points[n-1].Time.UnixMilli() < t || !b.seen[e])
	if !inOrder && b.places == nil {
		b.places, b.again = make(map[place]int, n), map[int]written{}
		for i := range b.points {
			b.places[place{b.points[i].Entity, b.points[i].Time.UnixMilli()}] = i
		}
	}
	if !inOrder {
		at := place{e, t}
		if i, ok := b.places[at]; ok {
			replaced := b.again[i]
			replaced.count(&b.points[i].Value)
			b.again[i], b.points[i].Value = replaced, s
			return
		}
		b.places[at] = n
	}
	b.seen[e] = true
	b.points = append(b.points, tsdb.Point[sample]{Entity: e, Time: time.UnixMilli(t), Value: s})
}

func (b *writeBatch) addFloat(t, start int64, value float64) {
	b.addSample(t, sample{float: value, start: start})
}

func (b *writeBatch) addHistogram(t, start int64, whole *histogram.Histogram, fraction *histogram.FloatHistogram) {
	s := sample{start: start, whole: whole, fraction: fraction}
	var err error
	if whole != nil {
		err = checkHistogram(whole, whole.ZeroThreshold)
		s.whole.CounterResetHint = storedHint(whole.CounterResetHint)
	} else {
		err = checkHistogram(fraction, fraction.ZeroThreshold)
		s.fraction.CounterResetHint = storedHint(fraction.CounterResetHint)
	}
	if err != nil {
		b.refuse(1, fmt.Errorf("a histogram is invalid: %w", err))
		return
	}
	b.addSample(t, s)
}

// storedHint drops the hint that a histogram continues the one before it. Which one that is can change later, when
// samples arrive out of order or expire, and PromQL would believe the hint. Without it, PromQL compares the two.
func storedHint(h histogram.CounterResetHint) histogram.CounterResetHint {
	if h == histogram.NotCounterReset {
		return histogram.UnknownCounterReset
	}
	return h
}

// mostExemplarLabels is the length in bytes of an exemplar's labels.
const mostExemplarLabels = 4096

func (b *writeBatch) addExemplar(series labels.Labels, t int64, value float64, own labels.Labels) {
	err := checkLabels(own)
	if name, twice := own.HasDuplicateLabelNames(); err == nil && twice {
		err = fmt.Errorf("an exemplar has the label %.100q twice", name)
	}
	if err == nil && own.ByteSize() > mostExemplarLabels {
		err = fmt.Errorf("the labels of an exemplar have %d bytes; want at most %d", own.ByteSize(), mostExemplarLabels)
	}
	if err != nil {
		b.refuse(1, err)
		return
	}
	b.add(seriesEntity(exemplarsKind, series), t, sample{exemplar: &storedExemplar{value, own}})
}

func (b *writeBatch) addMetadata(now time.Time, metric string, m storedMetadata) {
	b.add(seriesEntity(metadataKind, labels.FromStrings(model.MetricNameLabel, metric)), now.UnixMilli(), sample{metadata: &m})
}

// fromV1 adds a request of version 1.
func (b *writeBatch) fromV1(req *prompb.WriteRequest, now time.Time, known *metadataCache) {
	for _, ts := range req.Timeseries {
		ls := ts.ToLabels(&b.symbols, nil).WithoutEmpty() // a label without a value is as good as none
		if !b.begin(ls, len(ts.Samples)+len(ts.Histograms)+len(ts.Exemplars)) {
			continue
		}
		for _, s := range ts.Samples {
			b.addFloat(s.Timestamp, 0, s.Value)
		}
		for _, h := range ts.Histograms {
			if h.IsFloatHistogram() {
				b.addHistogram(h.Timestamp, 0, nil, h.ToFloatHistogram())
			} else {
				b.addHistogram(h.Timestamp, 0, h.ToIntHistogram(), nil)
			}
		}
		if b.some {
			b.written = append(b.written, ls)
		}
		for _, e := range ts.Exemplars {
			own := e.ToExemplar(&b.symbols, nil)
			b.addExemplar(ls, b.exemplarTime(own.Ts, now), own.Value, own.Labels)
		}
	}
	for _, m := range req.Metadata {
		stored := storedMetadata{model.MetricType(metadataTypes[m.Type]), m.Help, m.Unit}
		if m.MetricFamilyName != "" && known.isNew(m.MetricFamilyName, stored, now) {
			b.addMetadata(now, m.MetricFamilyName, stored)
		}
	}
}

// exemplarTime returns the time of an exemplar, or of the series' last sample in the request if it has none.
func (b *writeBatch) exemplarTime(t int64, now time.Time) int64 {
	return cmp.Or(t, b.last, now.UnixMilli())
}

var metadataTypes = map[prompb.MetricMetadata_MetricType]model.MetricType{
	prompb.MetricMetadata_UNKNOWN:        model.MetricTypeUnknown,
	prompb.MetricMetadata_COUNTER:        model.MetricTypeCounter,
	prompb.MetricMetadata_GAUGE:          model.MetricTypeGauge,
	prompb.MetricMetadata_HISTOGRAM:      model.MetricTypeHistogram,
	prompb.MetricMetadata_GAUGEHISTOGRAM: model.MetricTypeGaugeHistogram,
	prompb.MetricMetadata_SUMMARY:        model.MetricTypeSummary,
	prompb.MetricMetadata_INFO:           model.MetricTypeInfo,
	prompb.MetricMetadata_STATESET:       model.MetricTypeStateset,
}

var (
	errNoSamples = errors.New("a series has no samples, histograms or exemplars")
	errBoth      = errors.New("a series has samples and histograms; want one of the two")
	errSymbols   = errors.New("the symbols do not begin with an empty one")
)

// fromV2 adds a request of version 2. It returns an error for a request that is wrong as a whole.
func (b *writeBatch) fromV2(req *writev2.Request, now time.Time, known *metadataCache) error {
	if len(req.Timeseries) > 0 && (len(req.Symbols) == 0 || req.Symbols[0] != "") {
		return errSymbols
	}
	for _, ts := range req.Timeseries {
		n := len(ts.Samples) + len(ts.Histograms) + len(ts.Exemplars)
		ls, err := ts.ToLabels(&b.symbols, req.Symbols)
		if err != nil {
			b.refuse(n, fmt.Errorf("the labels of a series: %w", err))
			continue
		}
		ls = ls.WithoutEmpty()
		switch {
		case n == 0: // Prometheus sends exemplars alone
			b.refuse(1, errNoSamples)
			continue
		case len(ts.Samples) > 0 && len(ts.Histograms) > 0:
			b.refuse(n, errBoth)
			continue
		case !b.begin(ls, n):
			continue
		}
		b.addV2(&ts, ls, req.Symbols, now)
		if m, err := ts.ToMetadata(req.Symbols); err != nil {
			b.refuse(1, fmt.Errorf("the metadata of a series: %w", err))
		} else if stored := (storedMetadata{m.Type, m.Help, m.Unit}); !m.IsEmpty() {
			if metric := ls.Get(model.MetricNameLabel); known.isNew(metric, stored, now) {
				b.addMetadata(now, metric, stored)
			}
		}
	}
	return nil
}

// createdField is the number of a field of a series in which early senders of version 2 gave the start time of all its
// samples.
const createdField = 6

// createdOf returns that start time, or 0.
func createdOf(ts *writev2.TimeSeries) (created int64) {
	for rest := ts.XXX_unrecognized; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return created
		}
		size := protowire.ConsumeFieldValue(number, kind, rest[n:])
		if size < 0 {
			return created
		}
		if number == createdField && kind == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(rest[n:])
			created = int64(v)
		}
		rest = rest[n+size:]
	}
	return created
}

func (b *writeBatch) addV2(ts *writev2.TimeSeries, ls labels.Labels, symbols []string, now time.Time) {
	created := createdOf(ts)
	for _, s := range ts.Samples {
		b.addFloat(s.Timestamp, cmp.Or(s.StartTimestamp, created), s.Value)
	}
	for _, h := range ts.Histograms {
		start := cmp.Or(h.StartTimestamp, created)
		if h.IsFloatHistogram() {
			b.addHistogram(h.Timestamp, start, nil, h.ToFloatHistogram())
		} else {
			b.addHistogram(h.Timestamp, start, h.ToIntHistogram(), nil)
		}
	}
	if b.some {
		b.written = append(b.written, ls)
	}
	for _, e := range ts.Exemplars {
		own, err := e.ToExemplar(&b.symbols, symbols)
		if err != nil {
			b.refuse(1, fmt.Errorf("the labels of an exemplar: %w", err))
			continue
		}
		b.addExemplar(ls, b.exemplarTime(own.Ts, now), own.Value, own.Labels)
	}
}
