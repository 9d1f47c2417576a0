package main

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"

	"github.com/tidemark-go/tidemark/tsdb"
)

// Each histogram of a counter says whether the counter was reset before it. PromQL asks for it where it adds
// histograms. The hint is made when they are read, by comparing each one with the one before it, because what was
// written later may lie between them.

// hint sets the hints of the histograms of series. It reads the sample before the interval of each series that begins
// with one.
func (p *promSource) hint(ctx context.Context, repo *tsdb.Repository[sample], all []*selected, in tsdb.Interval) error {
	from, _ := in.Start()
	var with []*selected
	for _, s := range all {
		if s != nil && s.points.histograms() {
			with = append(with, s)
		}
	}
	if len(with) == 0 {
		return nil
	}
	return parallel(ctx, len(with), func(ctx context.Context, i int) error {
		var before sample
		if first := with[i].points.others[0]; first.isHistogram() && from.UnixMilli() > 0 {
			p, err := repo.AsOf(ctx, with[i].entity, from.Add(-time.Millisecond))
			if err != nil && !errors.Is(err, tsdb.ErrNotFound) {
				return err
			}
			before = p.Value
		}
		with[i].points.hint(before)
		return nil
	})
}

func (s sample) isHistogram() bool { return s.whole != nil || s.fraction != nil }

func (p *points) histograms() bool {
	for _, s := range p.others {
		if s.isHistogram() {
			return true
		}
	}
	return false
}

// hint sets the hints of all histograms. Before is the sample before the first one.
func (p *points) hint(before sample) {
	last := before.counts()
	for i := range p.times {
		s, ok := p.others[i]
		now := s.counts()
		if ok && now != nil && continues(s, now, before, last) {
			if s.whole != nil {
				s.whole.CounterResetHint = histogram.NotCounterReset
			} else {
				s.fraction.CounterResetHint = histogram.NotCounterReset
			}
		}
		before, last = s, now
	}
}

// counts returns a histogram as DetectReset compares it, or nil for another sample.
func (s sample) counts() *histogram.FloatHistogram {
	switch {
	case s.whole != nil:
		return s.whole.ToFloat(nil)
	case s.fraction != nil:
		return s.fraction
	}
	return nil
}

// continues reports whether a histogram continues to count where the one before it ended.
func continues(s sample, now *histogram.FloatHistogram, before sample, last *histogram.FloatHistogram) bool {
	return last != nil && (s.whole != nil) == (before.whole != nil) &&
		now.CounterResetHint == histogram.UnknownCounterReset && last.CounterResetHint != histogram.GaugeType &&
		!value.IsStaleNaN(now.Sum) && !value.IsStaleNaN(last.Sum) &&
		now.Schema == last.Schema && now.ZeroThreshold == last.ZeroThreshold && !now.DetectReset(last)
}
