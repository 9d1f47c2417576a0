package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// sampled is how many of a tenant's newest points, one per entity, show which fields a dataset has, and mostFields how
// many there can be.
const (
	sampled    = 1000
	mostFields = 1000
)

// fields are the metrics that the payloads of a dataset make for one tenant.
type fields struct {
	numbers    map[string]*number       // by the name of the metric
	histograms map[string]histogramName // the same
	texts      []text
	clash      map[string]string // metrics that two fields would make, with the names of both
}

// number is a metric of one number in each payload, or of a truth as 0 and 1.
type number struct {
	field  string // names joined by dots; empty for the payload itself
	schema *tsdb.Schema[codec.Value]
}

// text is a label of the metric with the suffix _info.
type text struct{ field, label string }

const infoSuffix = "_info"

// fieldsOf returns what a tenant's list of fields and its newest points make. The list lacks points that were stored
// before programs kept it.
func (m *mapped) fieldsOf(ctx context.Context, store *tsdb.Store, id tenant.ID) (*fields, error) {
	found, histograms := map[string]kinds{}, map[histogramName]bool{}
	if m.whole == nil {
		return m.metricsOf(found, histograms)
	}
	list, err := dynamic.FieldsOf(ctx, store, id, m.dataset)
	if err != nil {
		return nil, err
	}
	if err := m.sample(ctx, store, id, found, histograms); err != nil {
		return nil, err
	}
	all := anyRecord(list)
	for _, f := range list.Fields {
		if f.First.IsZero() { // a tenant without points has the fields of a type, too
			break
		}
		v, _ := all.Lookup(f.Name)
		if h, isPart := histogramOf(all, f.Name, v); isPart {
			histograms[h] = true
			continue
		}
		k := found[f.Name]
		for _, kind := range f.Kinds {
			k = k.withKind(kind)
		}
		found[f.Name] = k
	}
	return m.metricsOf(found, histograms)
}

// anyRecord returns a record that has all fields of a list, as numbers where they have ever been.
func anyRecord(list dynamic.FieldList) codec.Record {
	all := make([]codec.Field, len(list.Fields))
	for i, f := range list.Fields {
		all[i] = codec.Field{Name: f.Name, Value: codec.Str("")}
		if slices.ContainsFunc(f.Kinds, func(k codec.Kind) bool { return kinds{}.withKind(k).number }) {
			all[i].Value = codec.Int(0)
		}
	}
	return codec.NewRecord(all...)
}

// sample adds the fields of a tenant's newest points.
func (m *mapped) sample(ctx context.Context, store *tsdb.Store, id tenant.ID, found map[string]kinds, histograms map[histogramName]bool) error {
	seen := 0
	for p, err := range m.whole.For(store, id).Under(tsdb.AllEntities()).Latest(ctx) {
		if _, bad := asPointError(err); err != nil && !bad {
			return err
		}
		for name, v := range p.Value.All() {
			h, isPart := histogramOf(p.Value, name, v)
			k, known := found[name]
			switch more := len(found)+len(histograms) < mostFields; {
			case isPart && (more || histograms[h]):
				histograms[h] = true
			case !isPart && (more || known):
				found[name] = k.withKind(v.Kind())
			}
		}
		if seen++; seen == sampled || len(found)+len(histograms) >= mostFields {
			break
		}
	}
	return nil
}

// kinds is what a field was found to be. With numbers in some payloads and text in others it is both.
type kinds struct{ number, text bool }

func (k kinds) withKind(kind codec.Kind) kinds {
	switch kind {
	case codec.KindStr:
		k.text = true
	case codec.KindFloat, codec.KindInt, codec.KindUint, codec.KindBool, codec.KindTime:
		k.number = true
	}
	return k // lists, bytes and null are no metrics
}

// metricsOf names the metrics. Two fields with one name are a clash, which the queries that name it report.
func (m *mapped) metricsOf(found map[string]kinds, histograms map[histogramName]bool) (*fields, error) {
	f := &fields{numbers: map[string]*number{}, histograms: map[string]histogramName{}, clash: map[string]string{}}
	taken := m.takenLabels()
	for _, field := range slices.Sorted(maps.Keys(found)) {
		k := found[field]
		if k.number {
			if err := m.addNumber(f, field); err != nil {
				return nil, err
			}
		}
		if k.text {
			f.texts = append(f.texts, text{field, taken.label(field)})
		}
	}
	for h := range histograms {
		m.addHistogram(f, h)
	}
	_, histogram := f.histograms[m.name+infoSuffix]
	if _, number := f.numbers[m.name+infoSuffix]; (number || histogram) && len(f.texts) > 0 {
		f.clash[m.name+infoSuffix] = fmt.Sprintf("the field info and the texts of dataset %s", m.of)
	}
	return f, nil
}

// taken are the labels that a series has.
type taken map[string]bool

func (m *mapped) takenLabels() taken {
	labels := taken{model.MetricNameLabel: true}
	for _, label := range m.labels {
		labels[label] = true
	}
	return labels
}

// label returns a free label for the text of a field.
func (t taken) label(field string) string {
	label := labelName(field)
	if field == "" {
		label = "value"
	}
	for t[label] { // a key field, or another text, has the name
		label += "_"
	}
	t[label] = true
	return label
}

func (m *mapped) addNumber(f *fields, field string) error {
	name := m.metricOf(field)
	if other := f.numbers[name]; other != nil {
		f.clash[name] = bothFields(other.field, field, m.of)
		return nil
	}
	n, err := m.number(field)
	f.numbers[name] = n
	return err
}

func bothFields(a, b, dataset string) string {
	return fmt.Sprintf("the fields %s and %s of dataset %s", a, b, dataset)
}

// metricOf returns the name of the metric of a field.
func (m *mapped) metricOf(field string) string {
	if field == "" {
		return m.name
	}
	return m.name + "_" + promName(field)
}

// isMetricOf reports whether a field makes a metric of this dataset, whose name has the name of the dataset. It is
// metricOf without making the name.
func (m *mapped) isMetricOf(metric, field string) bool {
	rest := metric[len(m.name):]
	if field == "" || rest == "" {
		return field == rest
	}
	rest = rest[1:]
	for _, c := range field {
		if rest == "" || rest[0] != promByte(c) {
			return false
		}
		rest = rest[1:]
	}
	return rest == ""
}

// number returns the number of a field. It is made once, because descriptors of messages are large.
func (m *mapped) number(name string) (*number, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.numbers[name]; n != nil {
		return n, nil
	}
	field, err := dynamic.NewField(name, m.options)
	if err != nil {
		return nil, err
	}
	schema, err := dynamic.Numbers(m.dataset, field)
	if err != nil {
		return nil, err
	}
	if len(m.numbers) >= 10*mostFields { // of many tenants with other fields
		clear(m.numbers)
	}
	m.numbers[name] = &number{name, schema}
	return m.numbers[name], nil
}

// promName returns a name with an underscore for each character that PromQL would need quotes for.
func promName(name string) string {
	return strings.Map(func(c rune) rune { return rune(promByte(c)) }, name)
}

func promByte(c rune) byte {
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
		return byte(c)
	}
	return '_'
}

// labelName is promName for a label, which begins with a letter or an underscore.
func labelName(name string) string {
	name = promName(name)
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}

func clashError(metric, both string) error {
	return &apiError{status: http.StatusUnprocessableEntity, kind: "execution", text: fmt.Sprintf("the metric %s would be %s; rename one of them", metric, both)}
}
