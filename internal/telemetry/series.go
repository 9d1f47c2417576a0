package telemetry

import (
	"maps"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// mostKnown bounds each map of cached attributes. Attributes that do not fit are created each time.
const mostKnown = 4096

// add adds an entry to a map that is read without a lock, if there is room.
func add[K comparable, V any](to *atomic.Pointer[map[K]V], key K, value V) {
	old := *to.Load()
	if len(old) >= mostKnown {
		return
	}
	grown := make(map[K]V, len(old)+1)
	maps.Copy(grown, old)
	grown[key] = value
	to.Store(&grown)
}

// subject separates the metrics of operations.
type subject struct{ dataset, tenant string }

// family holds the series of one subject, by operation; batches have their own.
type family [2][Operations]atomic.Pointer[series]

// series holds the cached attributes of an operation.
type series struct {
	name      Name
	reads     bool
	operation string // as db.operation.name has it
	spanName  string
	attrs     []attribute.KeyValue
	start     []trace.SpanStartOption
	ok        []metric.RecordOption
	answered  [4]atomic.Pointer[answered] // an operation uses few methods
}

// answered holds the attributes of successful attempts by one method.
type answered struct {
	method string
	opts   []metric.RecordOption
}

// seriesOf returns the series of an operation.
func (p *Probe) seriesOf(name Name, s Subject) *series {
	key := subject{dataset: s.Dataset, tenant: p.tenant(s.Tenant)}
	f := (*p.known.Load())[key]
	if f == nil {
		f = p.familyOf(key)
	}
	batched := 0
	if s.Batched {
		batched = 1
	}
	slot := &f[batched][name]
	if s := slot.Load(); s != nil {
		return s
	}
	made := p.newSeries(name, s.Batched, key)
	slot.Store(made)
	return made
}

func (p *Probe) familyOf(key subject) *family {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := (*p.known.Load())[key]; f != nil {
		return f
	}
	f := new(family)
	add(&p.known, key, f)
	return f
}

// tenant returns a tenant's attribute: its name for the first tenants, and Other for further ones.
func (p *Probe) tenant(name string) string {
	if p.conf.Tenants <= 0 || name == "" {
		return ""
	}
	if _, ok := p.tallyOf(name); ok {
		return name
	}
	return Other
}

// tallyOf returns the counter of a tenant's points for writers, and whether the tenant has its own.
func (p *Probe) tallyOf(name string) (*tally, bool) {
	known := *p.tenants.Load()
	if t := known[name]; t != nil {
		return t, true
	}
	if len(known) >= p.conf.Tenants {
		return &p.others, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known = *p.tenants.Load()
	if t := known[name]; t != nil {
		return t, true
	}
	if len(known) >= p.conf.Tenants {
		return &p.others, false
	}
	t := new(tally)
	add(&p.tenants, name, t)
	return t, true
}

// tally counts what a tenant has passed to writers.
type tally struct{ points, bytes atomic.Int64 }

func (p *Probe) newSeries(name Name, batched bool, of subject) *series {
	operation := name.String()
	if batched {
		operation = "BATCH " + operation
	}
	attrs := append(p.base[:len(p.base):len(p.base)], attribute.String(attrOperation, operation))
	if of.dataset != "" {
		attrs = append(attrs, attribute.String(attrDataset, of.dataset))
	}
	if of.tenant != "" {
		attrs = append(attrs, attribute.String(attrTenant, of.tenant))
	}
	return &series{
		name:      name,
		reads:     name.Reads(),
		operation: operation,
		spanName:  operation + " " + p.conf.Table,
		attrs:     attrs,
		start:     []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...)},
		ok:        recordOptions(attrs),
	}
}

// failed returns the attributes of a series' operations with that failure.
func (s *series) failed(f failure) []metric.RecordOption {
	return recordOptions(append(s.attrs[:len(s.attrs):len(s.attrs)], f.attributes()...))
}

func recordOptions(attrs []attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}
