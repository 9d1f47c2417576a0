package main

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// series answers the labels of the series that match and have samples between start and end, as far as span says.
func (s *server) series(ctx context.Context, r request) (answer, error) {
	when := r.span()
	n := r.params.count("limit")
	sets := r.params.selectors(s.parser)
	if len(sets) == 0 {
		r.params.refuse("match[]", errors.New("no match[] parameter provided"))
	}
	if r.params.err != nil {
		return answer{}, nil
	}
	q := &querier{queryable: s.queryable(r), when: when}
	found, seen := []labels.Labels{}, map[*series]bool{}
	for _, set := range sets {
		err := q.each(ctx, set, func(matching []*series) error {
			for _, one := range matching {
				if !seen[one] {
					seen[one] = true
					found = append(found, one.labels)
				}
			}
			return nil
		})
		if err != nil {
			return answer{}, err
		}
	}
	slices.SortFunc(found, labels.Compare)
	found = slices.CompactFunc(found, labels.Equal)
	notes := annotations.Annotations{}
	if n > 0 && len(found) > n {
		found = found[:n]
		notes.Add(errors.New("results truncated due to limit"))
	}
	data := []byte{'['}
	for i, ls := range found {
		if i > 0 {
			data = append(data, ',')
		}
		data = appendLabelsJSON(data, ls)
	}
	return answer{data: append(data, ']'), notes: notes}, nil
}

// span returns the span of start and end.
func (r request) span() span {
	from, to := r.params.interval()
	return spanOf(from, to, r.params.now)
}

// labels answers the names of the labels of the series that match, or of all.
func (s *server) labels(ctx context.Context, r request) (answer, error) {
	return s.names(r, func(q *querier, matchers []*labels.Matcher) ([]string, error) {
		names, _, err := q.LabelNames(ctx, nil, matchers...)
		return names, err
	})
}

// labelValues answers the values of a label of the series that match, or of all.
func (s *server) labelValues(ctx context.Context, r request) (answer, error) {
	name := r.PathValue("name")
	if strings.HasPrefix(name, "U__") {
		name = model.UnescapeName(name, model.ValueEncodingEscaping)
	}
	if !model.UTF8Validation.IsValidLabelName(name) {
		return answer{}, badData(errors.New("invalid label name"))
	}
	return s.names(r, func(q *querier, matchers []*labels.Matcher) ([]string, error) {
		values, _, err := q.LabelValues(ctx, name, nil, matchers...)
		return values, err
	})
}

// names answers the union of what list returns for each selector.
func (s *server) names(r request, list func(*querier, []*labels.Matcher) ([]string, error)) (answer, error) {
	when := r.span()
	n := r.params.count("limit")
	sets := r.params.selectors(s.parser)
	if r.params.err != nil {
		return answer{}, nil
	}
	if len(sets) == 0 {
		sets = append(sets, nil)
	}
	q := &querier{queryable: s.queryable(r), when: when}
	all := map[string]bool{}
	for _, set := range sets {
		names, err := list(q, set)
		if err != nil {
			return answer{}, err
		}
		for _, name := range names {
			all[name] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(all))
	notes := annotations.Annotations{}
	if n > 0 && len(sorted) > n {
		notes.Add(errors.New("results truncated due to limit"))
	}
	return answer{data: appendStrings(nil, limited(sorted, &storage.LabelHints{Limit: n})), notes: notes}, nil
}

// buildInfo answers a version, by which clients decide what they can ask: that of Prometheus whose query engine this
// program has.
func buildInfo(context.Context, request) (answer, error) {
	version := "3.0.0"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/prometheus/prometheus" {
				version = prometheusVersion(m.Version)
			}
		}
	}
	data := append([]byte(`{"application":"tidemark promapi","version":`), appendString(nil, version)...)
	data = append(data, `,"revision":"","branch":"","buildUser":"","buildDate":"","goVersion":`...)
	return answer{data: append(appendString(data, runtime.Version()), '}')}, nil
}

// prometheusVersion returns the version of Prometheus that a version of its module has: 3.15.0 for v0.315.0.
func prometheusVersion(module string) string {
	minor, patch, ok := strings.Cut(strings.TrimPrefix(module, "v0."), ".")
	if !ok || len(minor) < 3 {
		return "3.0.0"
	}
	return minor[:len(minor)-2] + "." + strings.TrimLeft(minor[len(minor)-2:len(minor)-1], "0") + minor[len(minor)-1:] + "." + patch
}

// noRules and noAlerts answer empty lists: rules are evaluated by Grafana or by a Prometheus.
func noRules(context.Context, request) (answer, error) {
	return answer{data: []byte(`{"groups":[]}`)}, nil
}

func noAlerts(context.Context, request) (answer, error) {
	return answer{data: []byte(`{"alerts":[]}`)}, nil
}
