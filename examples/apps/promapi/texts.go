package main

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
)

// readTexts returns a series with the value 1 for each set of texts that an entity has at some time: the newest text of
// each field that is not older than the lookback. A series ends when the texts change, so an entity never has two at
// once. If neither a newest point nor one that is read has a text, there are no series.
func (r *mappedRead) readTexts(ctx context.Context) ([]*selected, error) {
	m := r.metric.metric
	var some atomic.Bool // a point has a text
	var all []*selected
	left, err := r.fromHeads(ctx, func(one *series, f *tsdb.Fields[codec.Record]) (bool, error) {
		newest := f.Times.Newest().UnixMilli()
		if newest < r.in.from {
			return true, nil
		}
		now := &selected{series: &series{labels: m.withTexts(one.labels, within(f, r.in.from)), entity: one.entity, open: true}}
		if now.labels.Len() > one.labels.Len() {
			some.Store(true)
		}
		all = append(all, now)
		return true, r.add(now, newest, sample{float: 1})
	})
	if err != nil {
		return nil, err
	}
	parts := make([][]*selected, len(left.of))
	err = parallel(ctx, len(left.of), func(ctx context.Context, i int) (err error) {
		h, err := left.textsOf(ctx, left.of[i])
		if err == nil {
			parts[i], err = h.series()
		}
		if h != nil && len(h.spans) > 0 {
			some.Store(true)
		}
		return err
	})
	if err != nil || m.texts == nil && !some.Load() {
		return nil, err
	}
	return append(all, slices.Concat(parts...)...), nil
}

// within returns the fields that are not older than a time in ms.
func within(f *tsdb.Fields[codec.Record], from int64) codec.Record {
	var young []codec.Field
	for name, v := range f.Value.All() {
		if at, ok := f.Times.Of(name); ok && at.UnixMilli() >= from {
			young = append(young, codec.Field{Name: name, Value: v})
		}
	}
	return codec.NewRecord(young...)
}

// textHistory is the texts of an entity's points.
type textHistory struct {
	*mappedRead
	of     *series
	times  []int64 // of the points, newest first, in ms
	spans  []textSpan
	oldest map[string]int   // index of the span of a field that was added last
	newer  map[string]int64 // time of the value of a field that was added last
	lines  map[string]*selected
	now    map[string]textSpan // the texts at the time that series has reached
	line   *selected           // what they make; nil if they have changed
	before *selected           // the one that has the last sample
}

// textSpan says that a field has a text at and after a time, and until another one.
type textSpan struct {
	field, text string
	from, until int64
}

// textsOf reads the points of an entity. If all samples count, it also reads the points before the first one, whose
// texts still count there.
func (r *mappedRead) textsOf(ctx context.Context, one *series) (*textHistory, error) {
	h := &textHistory{
		mappedRead: r, of: one, oldest: map[string]int{}, newer: map[string]int64{},
		lines: map[string]*selected{}, now: map[string]textSpan{},
	}
	in := r.in.Interval
	if r.in.every {
		in = tsdb.Between(time.UnixMilli(max(0, r.in.from-r.in.lookback+1)), time.UnixMilli(r.in.to+1))
	}
	for p, err := range r.metric.whole.For(r.store, r.id).Range(ctx, one.entity, in) {
		if _, bad := asPointError(err); bad {
			continue
		}
		if err == nil {
			err = h.add(p.Time.UnixMilli(), p.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}

// add adds a point that is older than those before it.
func (h *textHistory) add(at int64, fields codec.Record) error {
	if err := h.budget.takeSamples(1); err != nil {
		return err
	}
	if n := len(h.times); n == 0 || h.times[n-1] != at {
		h.times = append(h.times, at)
	}
	m := h.metric.metric
	for name, v := range fields.All() {
		if v.Kind() == codec.KindNull && !h.ends(v) {
			continue
		}
		until := at + h.in.lookback
		if newer, ok := h.newer[name]; ok {
			until = min(until, newer)
		}
		h.newer[name] = at
		text, _ := v.Str()
		if text == "" || until <= at {
			continue
		}
		if _, isPart := histogramOf(fields, name, v); isPart && !m.knowsText(name) {
			continue
		}
		if err := h.addSpan(textSpan{name, text, at, until}); err != nil {
			return err
		}
	}
	return nil
}

// addSpan adds a span, or begins the one after it earlier if that has the same text.
func (h *textHistory) addSpan(s textSpan) error {
	if i, ok := h.oldest[s.field]; ok && h.spans[i].text == s.text && h.spans[i].from == s.until {
		h.spans[i].from = s.from
		return nil
	}
	h.oldest[s.field] = len(h.spans)
	h.spans = append(h.spans, s)
	return h.budget.takeSamples(1 + (len(s.field)+len(s.text))/16)
}

// series returns the series of the texts, with a sample at each point, and one where texts become too old.
func (h *textHistory) series() ([]*selected, error) {
	slices.Reverse(h.times)
	slices.SortFunc(h.spans, func(a, b textSpan) int { return int(a.from - b.from) })
	spans := h.spans
	for i, at := range h.times {
		for len(spans) > 0 && spans[0].from <= at {
			h.now[spans[0].field], h.line, spans = spans[0], nil, spans[1:]
		}
		h.drop(at)
		if err := h.sample(at); err != nil {
			return nil, err
		}
		next := h.in.to + 1
		if i+1 < len(h.times) {
			next = h.times[i+1]
		}
		if err := h.grow(at, next); err != nil {
			return nil, err
		}
	}
	all := make([]*selected, 0, len(h.lines))
	for _, one := range h.lines {
		all = append(all, one)
	}
	return all, nil
}

// grow adds what changes after a point and before the next.
func (h *textHistory) grow(at, next int64) error {
	end := at + h.in.lookback
	for {
		change := int64(math.MaxInt64)
		for _, s := range h.now {
			change = min(change, s.until)
		}
		if change >= next || h.before == nil {
			return nil
		}
		if last := h.before.points.times; change >= end { // the point is too old, too
			if last[len(last)-1] > at {
				h.before.points.add(end, ended)
			}
			return nil
		}
		h.drop(change)
		if err := h.budget.takeSamples(1); err != nil {
			return err
		}
		if err := h.sample(change); err != nil {
			return err
		}
	}
}

// drop drops the texts that have ended.
func (h *textHistory) drop(at int64) {
	for name, s := range h.now {
		if s.until <= at {
			delete(h.now, name)
			h.line = nil
		}
	}
}

// sample adds a sample to the series of the texts, and ends the one before if that is another one.
func (h *textHistory) sample(at int64) (err error) {
	if at < h.in.from {
		return nil
	}
	if h.line == nil {
		if h.line, err = h.lineOf(); err != nil {
			return err
		}
	}
	if h.before != nil && h.before != h.line {
		h.before.points.add(at, ended)
	}
	h.before = h.line
	h.line.points.add(at, sample{float: 1})
	return nil
}

// lineOf returns the series of the texts.
func (h *textHistory) lineOf() (*selected, error) {
	texts := make([]codec.Field, 0, len(h.now))
	for _, s := range h.now {
		texts = append(texts, codec.Field{Name: s.field, Value: codec.Str(s.text)})
	}
	slices.SortFunc(texts, func(a, b codec.Field) int { return strings.Compare(a.Name, b.Name) })
	ls := h.metric.withTexts(h.of.labels, codec.NewRecord(texts...))
	key := string(ls.Bytes(nil))
	if h.lines[key] == nil {
		if err := h.budget.takeSeries(1); err != nil {
			return nil, err
		}
		h.lines[key] = &selected{series: &series{labels: ls, entity: h.of.entity, open: true}}
	}
	return h.lines[key], nil
}

// knowsText reports whether a field is one of the texts that the newest payloads have.
func (m *metric) knowsText(field string) bool {
	return slices.ContainsFunc(m.texts, func(t text) bool { return t.field == field })
}

// withTexts adds the texts of a payload to labels: those that the newest payloads have, too, and then all others.
func (m *metric) withTexts(ls labels.Labels, fields codec.Record) labels.Labels {
	b := labels.NewBuilder(ls)
	used := m.takenLabels()
	known := map[string]bool{}
	for _, t := range m.texts {
		used[t.label], known[t.field] = true, true
		v, _ := fields.Lookup(t.field)
		if text, ok := v.Str(); ok {
			b.Set(t.label, text)
		}
	}
	for name, v := range fields.All() {
		if text, ok := v.Str(); ok && !known[name] {
			if _, isPart := histogramOf(fields, name, v); !isPart {
				b.Set(used.label(name), text)
			}
		}
	}
	return b.Labels()
}
