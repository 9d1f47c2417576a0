package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"github.com/tidemark-go/tidemark/codec"
)

// samples are one of each kind, with what is stored of it.
var samples = map[string]struct {
	sample
	stored string
}{
	"float":           {sample{float: 21.5}, "664035800000000000"},
	"a stale marker":  {sample{float: math.Float64frombits(value.StaleNaN)}, "667ff0000000000002"},
	"with start time": {sample{float: 1, start: 1000}, "46d00f3ff0000000000000"},
	"histogram":       {sample{whole: &histogram.Histogram{Count: 1, ZeroCount: 1, ZeroThreshold: 0.5, Sum: 0.25}}, ""},
	"float histogram": {sample{fraction: &histogram.FloatHistogram{Count: 1.5, ZeroCount: 1.5, ZeroThreshold: 0.5, Sum: 0.25, CounterResetHint: histogram.GaugeType}, start: 5}, ""},
	"exemplar":        {sample{exemplar: &storedExemplar{1, labels.FromStrings("a", "b")}}, "653ff00000000000007b613d627d"},
	"metadata":        {sample{metadata: &storedMetadata{model.MetricTypeCounter, "h", ""}}, "6d07636f756e746572016800"},
}

// TestStoredSamples: what is stored of each kind is read as it was, and the bytes stay as they are.
func TestStoredSamples(t *testing.T) {
	c := sampleCodec{}
	for name, tt := range samples {
		data, err := c.Append([]byte("x"), tt.sample)
		if err != nil || data[0] != 'x' {
			t.Fatal(name, err)
		}
		data = data[1:]
		if got := fmt.Sprintf("%x", data); tt.stored != "" && got != tt.stored {
			t.Errorf("%s is stored as %s, and was %s before", name, got, tt.stored)
		}
		got, err := c.Decode(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := c.Append(nil, got)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s is read as %+v, which is stored as %x (%v), not %x", name, got, again, err, data)
		}
		for n := range data { // a payload that was cut is refused, or another valid one
			if _, err := c.Decode(data[:n]); err == nil && (tt.whole == nil && tt.fraction == nil) {
				t.Errorf("%s: the first %d of %d bytes are read", name, n, len(data))
			} else if err != nil && !errors.Is(err, codec.ErrCorrupt) {
				t.Errorf("%s: %v, want ErrCorrupt", name, err)
			}
		}
	}
}

func FuzzDecodeSample(f *testing.F) {
	for _, tt := range samples {
		data, err := sampleCodec{}.Append(nil, tt.sample)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := sampleCodec{}.Decode(data)
		if err != nil {
			return
		}
		if _, err := (sampleCodec{}).Append(nil, s); err != nil {
			t.Errorf("what %x decodes to cannot be stored: %v", data, err)
		}
		s.counts()
	})
}

// TestStoredLabels: no two sets of labels have one text, and each text gives its labels.
func TestStoredLabels(t *testing.T) {
	seen := map[string]string{}
	for _, pairs := range [][]string{
		{},
		{"a", "b"},
		{"a", "b,c=d"},
		{"a", "b", "c", "d"},
		{"a=b", "c"},
		{"a", "b=c"},
		{"a", `b\`},
		{"a", `b\,c=d`},
		{"a", "}"},
		{"a}", "{"},
		{"a", "ä\n\x00"},
		{"ä b", "%23#"},
		{"A", "upper case comes before the name"},
		{"a", ",", "b", "="},
	} {
		ls := labels.FromStrings(append([]string{model.MetricNameLabel, "m"}, pairs...)...)
		text := string(appendLabels(nil, ls))
		if other, ok := seen[text]; ok {
			t.Errorf("%s and %s have one text %q", ls, other, text)
		}
		seen[text] = ls.String()
		got, err := parseLabels("m", text)
		if err != nil || !labels.Equal(got, ls) {
			t.Errorf("%q gives %s (%v), want %s", text, got, err, ls)
		}
	}
	for _, text := range []string{"", "{", "}", "a=b", "{a}", "{a=b,}", "{a=b,c}", "{a=b=c}"} {
		if got, err := parseLabels("m", text); err == nil {
			t.Errorf("%q gives %s, want an error", text, got)
		}
	}
}
