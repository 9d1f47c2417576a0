package dashtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Scrapes are the data that Prometheus would have of a program.
type Scrapes struct {
	program string
	n       int // number of scrapes
	series  []*series
	known   map[string]*series
	types   map[string]string // of the metrics, by name
}

// series is a series with its samples.
type series struct {
	labels  labels.Labels
	samples []promql.FPoint
}

// New returns the scrapes of a program, whose name is its job in Prometheus.
func New(program string) *Scrapes {
	return &Scrapes{program: program, known: map[string]*series{}, types: map[string]string{}}
}

// client keeps no connection open.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}

// Scrape reads the metrics as Prometheus does. For the queries, each scrape is 15 seconds after the one before.
func (s *Scrapes) Scrape(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returns %s: %s", url, res.Status, text)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	s.n++
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")
	for _, f := range families {
		v, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.TimeFromUnixNano(s.at().UnixNano())}, f)
		if err != nil {
			return err
		}
		if f.GetType() == dto.MetricType_SUMMARY {
			return fmt.Errorf("%s is a summary, want no summaries", f.GetName())
		}
		s.types[f.GetName()] = strings.ToLower(f.GetType().String())
		for _, one := range v {
			s.add(one, host)
		}
	}
	return nil
}

// at is the time of the last scrape.
func (s *Scrapes) at() time.Time {
	return time.Unix(1_767_225_600, 0).Add(time.Duration(s.n) * interval)
}

func (s *Scrapes) add(one *model.Sample, host string) {
	b := labels.NewBuilder(labels.EmptyLabels())
	for name, value := range one.Metric {
		b.Set(string(name), string(value))
	}
	b.Set("job", s.program)
	b.Set("instance", host)
	l := b.Labels()
	to := s.known[l.String()]
	if to == nil {
		to = &series{labels: l}
		s.known[l.String()] = to
		s.series = append(s.series, to)
	}
	to.samples = append(to.samples, promql.FPoint{T: int64(one.Timestamp), F: float64(one.Value)})
}

// queryable returns the scrapes as Prometheus' engine reads them.
func (s *Scrapes) queryable() storage.Queryable {
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		set := &seriesSet{next: -1}
		for _, one := range s.series {
			if matches(one.labels, matchers) {
				set.all = append(set.all, promql.NewStorageSeries(promql.Series{Metric: one.labels, Floats: one.samples}))
			}
		}
		return set
	}}}
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	all  []storage.Series
	next int
}

func (s *seriesSet) Next() bool                      { s.next++; return s.next < len(s.all) }
func (s *seriesSet) At() storage.Series              { return s.all[s.next] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }
