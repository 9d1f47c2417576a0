package main

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// appendValue appends the data of a query: {"resultType":…,"result":…}. It shares no memory with the value.
func appendValue(dst []byte, v parser.Value) []byte {
	dst = append(dst, `{"resultType":"`...)
	dst = append(append(dst, v.Type()...), `","result":`...)
	switch v := v.(type) {
	case promql.Scalar:
		dst = appendPoint(dst, v.T, v.V)
	case promql.String:
		dst = appendTime(append(dst, '['), v.T)
		dst = append(appendString(append(dst, ','), v.V), ']')
	case promql.Vector:
		dst = append(dst, '[')
		for i, s := range v {
			dst = appendMetric(dst, i, s.Metric)
			if s.H != nil {
				dst = appendHistogramPoint(append(dst, `,"histogram":`...), s.T, s.H)
			} else {
				dst = appendPoint(append(dst, `,"value":`...), s.T, s.F)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, ']')
	case promql.Matrix:
		dst = append(dst, '[')
		for i, s := range v {
			dst = appendSeries(appendMetric(dst, i, s.Metric), s)
		}
		dst = append(dst, ']')
	default:
		dst = append(dst, "[]"...)
	}
	return append(dst, '}')
}

// appendMetric appends {"metric":…, after a comma if it is not the first.
func appendMetric(dst []byte, i int, ls labels.Labels) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return appendLabelsJSON(append(dst, `{"metric":`...), ls)
}

func appendSeries(dst []byte, s promql.Series) []byte {
	if len(s.Floats) > 0 {
		dst = append(dst, `,"values":[`...)
		for i, p := range s.Floats {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendPoint(dst, p.T, p.F)
		}
		dst = append(dst, ']')
	}
	if len(s.Histograms) > 0 {
		dst = append(dst, `,"histograms":[`...)
		for i, p := range s.Histograms {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendHistogramPoint(dst, p.T, p.H)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func appendLabelsJSON(dst []byte, ls labels.Labels) []byte {
	dst = append(dst, '{')
	first := true
	ls.Range(func(l labels.Label) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, l.Name), ':')
		dst = appendString(dst, l.Value)
	})
	return append(dst, '}')
}

// appendPoint appends [seconds,"value"].
func appendPoint(dst []byte, t int64, v float64) []byte {
	dst = append(appendTime(append(dst, '['), t), ',')
	return append(appendFloat(dst, v), ']')
}

// appendTime appends milliseconds as seconds.
func appendTime(dst []byte, t int64) []byte {
	if t < 0 {
		dst = append(dst, '-')
		t = -t
	}
	dst = strconv.AppendInt(dst, t/1000, 10)
	if part := t % 1000; part != 0 {
		dst = append(dst, '.', byte('0'+part/100), byte('0'+part/10%10), byte('0'+part%10))
	}
	return dst
}

// appendFloat appends a number as text, because JSON has neither NaN nor infinities.
func appendFloat(dst []byte, v float64) []byte {
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return append(strconv.AppendFloat(append(dst, '"'), v, format, -1, 64), '"')
}

func appendHistogramPoint(dst []byte, t int64, h *histogram.FloatHistogram) []byte {
	dst = appendTime(append(dst, '['), t)
	dst = appendFloat(append(dst, `,{"count":`...), h.Count)
	dst = appendFloat(append(dst, `,"sum":`...), h.Sum)
	first := true
	for it := h.AllBucketIterator(); it.Next(); {
		b := it.At()
		if b.Count == 0 {
			continue
		}
		if first {
			dst = append(dst, `,"buckets":[`...)
		} else {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, '[', byte('0'+boundary(b.LowerInclusive, b.UpperInclusive)))
		for _, v := range []float64{b.Lower, b.Upper, b.Count} {
			dst = appendFloat(append(dst, ','), v)
		}
		dst = append(dst, ']')
	}
	if !first {
		dst = append(dst, ']')
	}
	return append(dst, "}]"...)
}

// boundary returns which ends of a bucket belong to it, as the API numbers it.
func boundary(lower, upper bool) int {
	switch {
	case lower && upper:
		return 3
	case lower:
		return 1
	case upper:
		return 0
	}
	return 2
}

// appendString appends text in JSON. Text that is not UTF-8 gets replacement characters.
func appendString(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(text) // text always marshals
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, text := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, text)
	}
	return append(dst, ']')
}
