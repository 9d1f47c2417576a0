package main

import (
	"math"
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// points are the samples of a series in memory, in the order of their times, which differ.
type points struct {
	times  []int64
	floats []float64
	others map[int]sample // by index: histograms, and floats with a start time
}

// add adds a sample. Samples are added newest first; reverse puts them into their order.
func (p *points) add(t int64, s sample) {
	if n := len(p.times); n > 0 && p.times[n-1] == t {
		return // of several points within a millisecond, the newest remains
	}
	if s.whole != nil || s.fraction != nil || s.start != 0 {
		if p.others == nil {
			p.others = map[int]sample{}
		}
		p.others[len(p.times)] = s
	}
	p.times = append(p.times, t)
	p.floats = append(p.floats, s.float)
}

func (p *points) reverse() {
	slices.Reverse(p.times)
	slices.Reverse(p.floats)
	if p.others == nil {
		return
	}
	others := make(map[int]sample, len(p.others))
	for i, s := range p.others {
		others[len(p.times)-1-i] = s
	}
	p.others = others
}

// pointsIterator implements chunkenc.Iterator. Histograms are copies, because PromQL changes them.
type pointsIterator struct {
	*points
	at int // -1 before the first sample
}

func (it *pointsIterator) kind() chunkenc.ValueType {
	if it.at >= len(it.times) {
		return chunkenc.ValNone
	}
	switch s := it.others[it.at]; {
	case s.whole != nil:
		return chunkenc.ValHistogram
	case s.fraction != nil:
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

func (it *pointsIterator) Next() chunkenc.ValueType {
	it.at = min(it.at+1, len(it.times))
	return it.kind()
}

// millis is int64 under another name, without which go vet takes Seek for the method of io.Seeker.
type millis = int64

func (it *pointsIterator) Seek(t millis) chunkenc.ValueType {
	it.at = max(it.at, 0)
	if it.at < len(it.times) && it.times[it.at] < t {
		it.at += sort.Search(len(it.times)-it.at, func(i int) bool { return it.times[it.at+i] >= t })
	}
	return it.kind()
}

func (it *pointsIterator) At() (int64, float64) { return it.times[it.at], it.floats[it.at] }

func (it *pointsIterator) AtHistogram(h *histogram.Histogram) (int64, *histogram.Histogram) {
	if h == nil {
		h = new(histogram.Histogram)
	}
	it.others[it.at].whole.CopyTo(h)
	return it.times[it.at], h
}

func (it *pointsIterator) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	s := it.others[it.at]
	if s.whole != nil {
		return it.times[it.at], s.whole.ToFloat(h)
	}
	if h == nil {
		h = new(histogram.FloatHistogram)
	}
	s.fraction.CopyTo(h)
	return it.times[it.at], h
}

func (it *pointsIterator) AtT() int64 {
	if it.at < 0 || it.at >= len(it.times) {
		return math.MinInt64
	}
	return it.times[it.at]
}

func (it *pointsIterator) AtST() int64 { return it.others[it.at].start }
func (it *pointsIterator) Err() error  { return nil }

// selected is a series and its samples. It implements storage.Series.
type selected struct {
	*series
	points points
}

func (s *selected) Labels() labels.Labels { return s.labels }

func (s *selected) Iterator(reuse chunkenc.Iterator) chunkenc.Iterator {
	it, ok := reuse.(*pointsIterator)
	if !ok {
		it = new(pointsIterator)
	}
	*it = pointsIterator{&s.points, -1}
	return it
}

// seriesList implements storage.SeriesSet.
type seriesList struct {
	left []*selected
	now  *selected
}

func (l *seriesList) Next() bool {
	if len(l.left) == 0 {
		return false
	}
	l.now, l.left = l.left[0], l.left[1:]
	return true
}

func (l *seriesList) At() storage.Series                { return l.now }
func (l *seriesList) Err() error                        { return nil }
func (l *seriesList) Warnings() annotations.Annotations { return nil }
