package main

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/tsdb"
)

// promDataset is the dataset that stores what remote write sends.
const promDataset = "prom"

// The first key field of the dataset: what the points of a series are.
const (
	samplesKind   = "s"
	exemplarsKind = "e"
	metadataKind  = "m" // of a metric; its points have no labels
)

// sample is one stored value of a series: a float, a native histogram with whole or with fractional counts, an
// exemplar, or the metadata of a metric. One field decides which: the first that is not nil, and the float if all are.
type sample struct {
	float    float64
	start    int64 // when a counter began to count, in ms since 1970; 0 if unknown
	whole    *histogram.Histogram
	fraction *histogram.FloatHistogram
	exemplar *storedExemplar
	metadata *storedMetadata
}

// weight returns as how many samples s counts against -max-samples: one, and another for each 16 bytes besides.
func (s *sample) weight() int {
	const number, sample, own = 8, 16, 200
	switch {
	case s.whole != nil:
		h := s.whole
		return 1 + (own+number*(len(h.PositiveSpans)+len(h.PositiveBuckets)+len(h.NegativeSpans)+len(h.NegativeBuckets)+len(h.CustomValues)))/sample
	case s.fraction != nil:
		h := s.fraction
		return 1 + (own+number*(len(h.PositiveSpans)+len(h.PositiveBuckets)+len(h.NegativeSpans)+len(h.NegativeBuckets)+len(h.CustomValues)))/sample
	case s.exemplar != nil:
		return 1 + int(s.exemplar.labels.ByteSize()/sample)
	}
	return 1
}

// storedExemplar is the value of an exemplar and its own labels.
type storedExemplar struct {
	value  float64
	labels labels.Labels
}

// storedMetadata describes a metric.
type storedMetadata struct {
	Type model.MetricType `json:"type"`
	Help string           `json:"help"`
	Unit string           `json:"unit"`
}

// defineProm returns the schema of remote write: one row per sample. The age is how long samples are kept, 0 for ever.
func defineProm(age time.Duration) (*tsdb.Schema[sample], error) {
	class := gc.Class{}
	if age > 0 {
		class = gc.Class{Name: promDataset, Policy: gc.MaxAge(age)}
	}
	return tsdb.Define(promDataset, tsdb.Key("kind", "metric", "labels"), codec.Codec[sample](sampleCodec{}), tsdb.SchemaOptions{
		Precision: tsdb.Milliseconds,
		Retention: class,
	})
}

// sampleCodec stores a sample as one byte for its kind, the start time as a varint if there is one, and the value:
// eight bytes for a float, a prometheus.Histogram message without its time for a histogram, and so on. A NaN keeps its
// bits, because the marker of a stale series is one of them.
type sampleCodec struct{}

// The kinds of payloads. In upper case they have a start time.
const (
	floatPayload     = 'f'
	histogramPayload = 'h'
	exemplarPayload  = 'e'
	metadataPayload  = 'm'
	startBit         = 'a' - 'A' // cleared if there is a start time
)

const sampleTag = "prom"

var errSample = errors.New("not a sample")

func (sampleCodec) Tag() string { return sampleTag }

func (sampleCodec) Append(dst []byte, s sample) ([]byte, error) {
	switch {
	case s.exemplar != nil:
		dst = append(dst, exemplarPayload)
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(s.exemplar.value))
		return appendLabels(dst, s.exemplar.labels), nil
	case s.metadata != nil:
		dst = append(dst, metadataPayload)
		for _, text := range []string{string(s.metadata.Type), s.metadata.Help, s.metadata.Unit} {
			dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
		}
		return dst, nil
	case s.whole != nil:
		return appendHistogram(dst, s.start, prompb.FromIntHistogram(0, s.whole))
	case s.fraction != nil:
		return appendHistogram(dst, s.start, prompb.FromFloatHistogram(0, s.fraction))
	}
	dst = appendStart(dst, floatPayload, s.start)
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(s.float)), nil
}

func appendStart(dst []byte, kind byte, start int64) []byte {
	if start == 0 {
		return append(dst, kind)
	}
	return binary.AppendVarint(append(dst, kind&^startBit), start)
}

func appendHistogram(dst []byte, start int64, h prompb.Histogram) ([]byte, error) {
	message, err := h.Marshal()
	if err != nil {
		return dst, codecerr.NewEncode(sampleTag, err)
	}
	return append(appendStart(dst, histogramPayload, start), message...), nil
}

func (sampleCodec) Decode(src []byte) (sample, error) {
	s, err := decodeSample(src)
	if err != nil {
		return sample{}, codecerr.NewCorrupt(sampleTag, src, err)
	}
	return s, nil
}

func decodeSample(src []byte) (s sample, err error) {
	if len(src) == 0 {
		return s, errSample
	}
	kind, rest := src[0], src[1:]
	if kind&startBit == 0 {
		n := 0
		if s.start, n = binary.Varint(rest); n <= 0 || s.start == 0 {
			return s, errSample
		}
		kind, rest = kind|startBit, rest[n:]
		if kind != floatPayload && kind != histogramPayload {
			return s, errSample
		}
	}
	switch kind {
	case floatPayload:
		if len(rest) != 8 {
			return s, errSample
		}
		s.float = math.Float64frombits(binary.BigEndian.Uint64(rest))
	case histogramPayload:
		return s, s.decodeHistogram(rest)
	case exemplarPayload:
		if len(rest) < 8 {
			return s, errSample
		}
		s.exemplar = &storedExemplar{value: math.Float64frombits(binary.BigEndian.Uint64(rest))}
		s.exemplar.labels, err = parseLabels("", string(rest[8:]))
		return s, err
	case metadataPayload:
		return s, s.decodeMetadata(rest)
	default:
		return s, errSample
	}
	return s, nil
}

func (s *sample) decodeHistogram(message []byte) error {
	var h prompb.Histogram
	if err := h.Unmarshal(message); err != nil {
		return err
	}
	if h.IsFloatHistogram() {
		s.fraction = h.ToFloatHistogram()
		return checkHistogram(s.fraction, s.fraction.ZeroThreshold)
	}
	s.whole = h.ToIntHistogram()
	return checkHistogram(s.whole, s.whole.ZeroThreshold)
}

var errThreshold = errors.New("the zero threshold is not a number of 0 or more")

// checkHistogram also checks what Validate does not: PromQL would add histograms for ever if a zero threshold were NaN.
func checkHistogram(h interface{ Validate() error }, zeroThreshold float64) error {
	if math.IsNaN(zeroThreshold) || zeroThreshold < 0 || math.IsInf(zeroThreshold, 1) {
		return errThreshold
	}
	return h.Validate()
}

func (s *sample) decodeMetadata(src []byte) error {
	var texts [3]string
	for i := range texts {
		n, size := binary.Uvarint(src)
		if size <= 0 || n > uint64(len(src)-size) {
			return errSample
		}
		texts[i], src = string(src[size:size+int(n)]), src[size+int(n):]
	}
	if len(src) > 0 {
		return errSample
	}
	s.metadata = &storedMetadata{model.MetricType(texts[0]), texts[1], texts[2]}
	return nil
}
