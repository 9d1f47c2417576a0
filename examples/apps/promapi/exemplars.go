package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/tidemark-go/tidemark/tsdb"
)

// exemplars answers the exemplars of all series that an expression selects.
func (s *server) exemplars(ctx context.Context, r request) (answer, error) {
	from, to := r.params.interval()
	if r.params.err != nil {
		return answer{}, nil
	}
	expr, err := s.parse(r.params.Get("query"), mostLevels)
	if err != nil {
		return answer{}, err
	}
	in := tsdb.Between(maxTime(from, epoch), to).ClosedEnd()
	if to.Before(epoch) {
		return answer{data: []byte("[]")}, nil
	}
	q := &querier{queryable: s.queryable(r)}
	q.sources = []source{s.prom} // other series have no exemplars
	found := map[string]*series{}
	for _, matchers := range parser.ExtractSelectors(expr) {
		err := q.each(ctx, matchers, func(matching []*series) error {
			for _, one := range matching {
				found[one.entity.String()] = one
			}
			return nil
		})
		if err != nil {
			return answer{}, err
		}
	}
	list := make([]*series, 0, len(found))
	for _, one := range found {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
	parts := make([][]byte, len(list))
	err = parallel(ctx, len(list), func(ctx context.Context, i int) (err error) {
		parts[i], err = s.exemplarsOf(ctx, r, list[i], in)
		return err
	})
	if err != nil {
		return answer{}, stored(err)
	}
	data := []byte{'['}
	for _, part := range parts {
		if len(part) == 0 {
			continue
		}
		if len(data) > 1 {
			data = append(data, ',')
		}
		data = append(data, part...)
	}
	return answer{data: append(data, ']')}, nil
}

// exemplarsOf returns the exemplars of a series as JSON, or nothing if it has none.
func (s *server) exemplarsOf(ctx context.Context, r request, one *series, in tsdb.Interval) ([]byte, error) {
	var dst []byte
	for p, err := range s.prom.schema.For(s.store, r.tenant).Range(ctx, seriesEntity(exemplarsKind, one.labels), in, tsdb.OldestFirst) {
		if err != nil {
			return nil, err
		}
		if err := r.budget.takeSamples(p.Value.weight()); err != nil {
			return nil, err
		}
		e := p.Value.exemplar
		if e == nil {
			continue
		}
		if dst == nil {
			dst = append(appendLabelsJSON([]byte(`{"seriesLabels":`), one.labels), `,"exemplars":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendLabelsJSON(append(dst, `{"labels":`...), e.labels)
		dst = appendFloat(append(dst, `,"value":`...), e.value)
		dst = append(appendTime(append(dst, `,"timestamp":`...), p.Time.UnixMilli()), '}')
	}
	if dst != nil {
		dst = append(dst, "]}"...)
	}
	return dst, nil
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// metadataOf answers type, help and unit of the metrics.
func (s *server) metadataOf(ctx context.Context, r request) (answer, error) {
	n, only := r.params.count("limit"), r.params.Get("metric")
	r.params.count("limit_per_metric") // there is one for each
	if r.params.err != nil {
		return answer{}, nil
	}
	repo := s.prom.schema.For(s.store, r.tenant)
	data, count := []byte{'{'}, 0
	add := func(metric string, m *storedMetadata) {
		if count++; count > 1 {
			data = append(data, ',')
		}
		data = append(appendString(data, metric), `:[{"type":`...)
		data = append(appendString(data, strings.ToLower(string(m.Type))), `,"unit":`...)
		data = append(appendString(data, m.Unit), `,"help":`...)
		data = append(appendString(data, m.Help), "}]"...)
	}
	if only != "" {
		p, err := repo.Latest(ctx, seriesEntity(metadataKind, labels.FromStrings(model.MetricNameLabel, only)))
		if err == nil && p.Value.metadata != nil {
			add(only, p.Value.metadata)
		} else if err != nil && !errors.Is(err, tsdb.ErrNotFound) {
			return answer{}, stored(err)
		}
		return answer{data: append(data, '}')}, nil
	}
	for p, err := range repo.Under(tsdb.NewPrefix(metadataKind)).Latest(ctx) {
		if err != nil {
			return answer{}, stored(err)
		}
		if p.Value.metadata == nil {
			continue
		}
		if n > 0 && count == n {
			break
		}
		if err := r.budget.takeSeries(1); err != nil {
			return answer{}, err
		}
		add(p.Entity.Parts()[1], p.Value.metadata)
	}
	return answer{data: append(data, '}')}, nil
}
