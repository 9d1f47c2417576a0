package web

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Metrics are the metrics of the program's own stores, such as a ManualReader of OpenTelemetry's SDK. The stores need a
// meter provider with this reader, and tsdb.Telemetry.Tenants for figures by tenant.
type Metrics interface {
	Collect(ctx context.Context, to *metricdata.ResourceMetrics) error
}

// figuresFor is how long collected metrics are shown, and so how often the page health asks.
const figuresFor = 5 * time.Second

// figures are the metrics of this process. Parts that it does not have are nil: their writers and workers run
// elsewhere.
type figures struct {
	Writer  *writerFigures  `json:"writer"`
	Journal *journalFigures `json:"journal"`
	Cache   *cacheFigures   `json:"cache"`
	Rollups []rollupLag     `json:"rollups"`
	// Traffic is per second, over the last Seconds.
	Traffic []traffic `json:"traffic"`
	Seconds float64   `json:"seconds"`
}

// writerFigures are those of all writers of this process.
type writerFigures struct {
	Points         float64 `json:"points"`
	CapacityPoints float64 `json:"capacity_points"`
	Bytes          float64 `json:"bytes"`
	CapacityBytes  float64 `json:"capacity_bytes"`
	Oldest         float64 `json:"oldest_s"`
	Stored         float64 `json:"stored"`
	Rejected       float64 `json:"rejected"`
	Unknown        float64 `json:"unknown"`
	Retries        float64 `json:"retries"`
	InFlight       float64 `json:"in_flight"`
	Slots          float64 `json:"slots"`
	Down           bool    `json:"down"`
}

type journalFigures struct {
	Points      float64 `json:"points"`
	Bytes       float64 `json:"bytes"`
	Capacity    float64 `json:"capacity"`
	DeadLetters float64 `json:"dead_letters"`
}

type cacheFigures struct {
	Entries float64 `json:"entries"`
	Hits    float64 `json:"hits"`
	Misses  float64 `json:"misses"`
}

// rollupLag is how long a closed bucket has waited for a worker.
type rollupLag struct {
	Dataset string  `json:"dataset"`
	Rollup  string  `json:"rollup"`
	Lag     float64 `json:"lag_s"`
}

// traffic is what a tenant does: points and bytes given to writers, reads and the rows that they return, and calls over
// a limit.
type traffic struct {
	Tenant  string  `json:"tenant"`
	Points  float64 `json:"points"`
	Bytes   float64 `json:"bytes"`
	Reads   float64 `json:"reads"`
	Rows    float64 `json:"rows"`
	Refused float64 `json:"refused"`
}

// meter collects metrics, at most once in figuresFor, however many users look.
type meter struct {
	source Metrics

	mu     sync.Mutex
	at     time.Time
	counts map[string]traffic // since the start of the process
	last   *figures
}

// now returns the figures of this process, or nil without metrics.
func (m *meter) now(ctx context.Context) (*figures, error) {
	if m.source == nil {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.last != nil && now.Sub(m.at) < figuresFor-time.Second { // less than the pages' interval: a reader's timer is not exact
		return m.last, nil
	}
	var all metricdata.ResourceMetrics
	if err := m.source.Collect(ctx, &all); err != nil {
		return nil, err
	}
	f, counts := readMetrics(all)
	if m.last == nil {
		f.Seconds = 0
	} else {
		f.Seconds = now.Sub(m.at).Seconds()
	}
	for name, c := range counts {
		f.Traffic = append(f.Traffic, c.since(m.counts[name], f.Seconds, name))
	}
	slices.SortFunc(f.Traffic, func(a, b traffic) int { return strings.Compare(a.Tenant, b.Tenant) })
	m.at, m.counts, m.last = now, counts, f
	return f, nil
}

// since returns the rates between two counts.
func (t traffic) since(before traffic, seconds float64, tenant string) traffic {
	rate := func(now, before float64) float64 {
		if seconds == 0 {
			return 0
		}
		return max(now-before, 0) / seconds
	}
	return traffic{
		tenant, rate(t.Points, before.Points), rate(t.Bytes, before.Bytes),
		rate(t.Reads, before.Reads), rate(t.Rows, before.Rows), rate(t.Refused, before.Refused),
	}
}

// of returns the traffic of one tenant. It reports false if this process has no figures by tenant, or not yet.
func (f *figures) of(tenant string) (traffic, bool) {
	if f == nil || f.Seconds == 0 || len(f.Traffic) == 0 {
		return traffic{}, false
	}
	for _, t := range f.Traffic {
		if t.Tenant == tenant {
			return t, true
		}
	}
	return traffic{Tenant: tenant}, true
}

// readMetrics takes what the pages show from the metrics that docs/telemetry.md describes. The counts are since the
// start.
func readMetrics(all metricdata.ResourceMetrics) (*figures, map[string]traffic) {
	f, counts := &figures{}, map[string]traffic{}
	w, j, c := &writerFigures{}, &journalFigures{}, &cacheFigures{}
	down := 0.0
	numbers := map[string]*float64{ // by metric and label
		"tidemark.writer.buffer.points": &w.Points, "tidemark.writer.buffer.capacity.points": &w.CapacityPoints,
		"tidemark.writer.buffer.bytes": &w.Bytes, "tidemark.writer.buffer.capacity.bytes": &w.CapacityBytes,
		"tidemark.writer.oldest.age": &w.Oldest, "tidemark.writer.retries": &w.Retries, "tidemark.writer.down": &down,
		"tidemark.writer.requests.inflight": &w.InFlight, "tidemark.writer.requests.limit": &w.Slots,
		"tidemark.writer.points stored": &w.Stored, "tidemark.writer.points rejected": &w.Rejected, "tidemark.writer.points unknown": &w.Unknown,
		"tidemark.journal.points": &j.Points, "tidemark.journal.bytes": &j.Bytes,
		"tidemark.journal.capacity": &j.Capacity, "tidemark.journal.dead_letters": &j.DeadLetters,
		"tidemark.cache.entries": &c.Entries, "tidemark.cache.requests hit": &c.Hits, "tidemark.cache.requests miss": &c.Misses,
	}
	eachSample(all, func(name string, s sample) {
		switch family, _, _ := strings.Cut(strings.TrimPrefix(name, "tidemark."), "."); family {
		case "writer":
			f.Writer = w
		case "journal":
			f.Journal = j
		case "cache":
			f.Cache = c
		}
		if x := numbers[strings.TrimSpace(name+" "+s.label("tidemark.outcome")+s.label("tidemark.cache.result"))]; x != nil {
			*x += s.value
		}
		if name == "tidemark.rollup.lag" {
			f.Rollups = append(f.Rollups, rollupLag{s.label("tidemark.dataset"), s.label("tidemark.rollup"), s.value})
		}
		if id := s.label("tidemark.tenant"); id != "" {
			t := counts[id]
			t.add(name, s)
			counts[id] = t
		}
	})
	w.Down = down > 0
	slices.SortFunc(f.Rollups, func(a, b rollupLag) int {
		return cmp.Or(strings.Compare(a.Dataset, b.Dataset), strings.Compare(a.Rollup, b.Rollup))
	})
	return f, counts
}

// add counts a sample of a metric of the tenant.
func (t *traffic) add(name string, s sample) {
	switch name {
	case "tidemark.writer.tenant.points":
		t.Points += s.value
	case "tidemark.writer.tenant.bytes":
		t.Bytes += s.value
	case "db.client.response.returned_rows":
		t.Reads += s.value
		t.Rows += s.sum
	case "db.client.operation.duration":
		if s.label("error.type") == "limit.ErrExceeded" {
			t.Refused += s.value
		}
	}
}

// sample is a number of a metric, or the count and the sum of a histogram.
type sample struct {
	labels     attribute.Set
	value, sum float64
}

// label returns the value of a label, or "".
func (s sample) label(key attribute.Key) string {
	v, _ := s.labels.Value(key)
	return v.AsString()
}

// eachSample calls do for each sample of all metrics of the kinds that the SDK has.
func eachSample(all metricdata.ResourceMetrics, do func(name string, s sample)) {
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					do(m.Name, sample{p.Attributes, float64(p.Value), 0})
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					do(m.Name, sample{p.Attributes, p.Value, 0})
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					do(m.Name, sample{p.Attributes, p.Value, 0})
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					do(m.Name, sample{p.Attributes, float64(p.Count), p.Sum})
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					do(m.Name, sample{p.Attributes, float64(p.Count), float64(p.Sum)})
				}
			}
		}
	}
}
