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
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
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
	samples []chunks.Sample
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
	to.samples = append(to.samples, sample{int64(one.Timestamp), float64(one.Value)})
}

// sample implements chunks.Sample.
type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// Querier implements storage.Queryable.
func (s *Scrapes) Querier(_, _ int64) (storage.Querier, error) { return querier{s}, nil }

type querier struct{ *Scrapes }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{next: -1}
	for _, one := range q.series {
		if matches(one.labels, matchers) {
			set.all = append(set.all, one)
		}
	}
	return set
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// LabelValues implements storage.Querier.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.Querier.
func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (querier) Close() error { return nil }

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	all  []*series
	next int
}

func (s *seriesSet) Next() bool { s.next++; return s.next < len(s.all) }
func (s *seriesSet) At() storage.Series {
	return storage.NewListSeries(s.all[s.next].labels, s.all[s.next].samples)
}
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }
