package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
)

// sampled is how many of a tenant's newest points, one per entity, show which fields a dataset has, and mostFields how many there can
// be.
const (
	sampled    = 1000
	mostFields = 1000
)

// fields are the metrics that the payloads of a dataset make for one tenant.
type fields struct {
	numbers map[string]*number // by the name of the metric
	texts   []text
	clash   map[string]string // metrics that two fields would make, with the names of both
}

// number is a metric of one number in each payload, or of a truth as 0 and 1.
type number struct {
	path   []string
	schema *tsdb.Schema[codec.Value]
}

// text is a label of the metric with the suffix _info.
type text struct {
	path  []string
	label string
}

const infoSuffix = "_info"

// fieldsOf samples the newest points of a tenant.
func (m *mapped) fieldsOf(ctx context.Context, store *tsdb.Store, id tenant.ID) (*fields, error) {
	paths := map[string]pathKind{}
	if m.whole == nil {
		return m.metricsOf(paths)
	}
	seen := 0
	for p, err := range m.whole.For(store, id).LatestUnder(ctx, tsdb.AllEntities()) {
		if _, bad := asPointError(err); err != nil && !bad {
			return nil, err
		}
		if err == nil {
			addPaths(paths, p.Value)
		}
		if seen++; seen == sampled || len(paths) >= mostFields {
			break
		}
	}
	return m.metricsOf(paths)
}

// pathKind is what was found at a path. A field with numbers in some payloads and text in others is both.
type pathKind struct {
	path          []string
	isNum, isText bool
}

func addPaths(paths map[string]pathKind, fields codec.Record) {
	for name, v := range fields.All() {
		path := strings.Split(name, ".")
		if name == "" {
			path = nil
		}
		key := strings.Join(path, "\x00")
		k := paths[key]
		k.path = path
		_, isNum := v.Number()
		_, isBool := v.Bool()
		_, isText := v.Str()
		if !isNum && !isBool && !isText || len(paths) >= mostFields {
			continue // lists, bytes and null are no metrics
		}
		k.isNum, k.isText = k.isNum || isNum || isBool, k.isText || isText
		paths[key] = k
	}
}

// metricsOf names the metrics. Two fields with one name are a clash, which the queries that name it report.
func (m *mapped) metricsOf(paths map[string]pathKind) (*fields, error) {
	f := &fields{numbers: map[string]*number{}, clash: map[string]string{}}
	labels := map[string]bool{}
	for _, label := range m.labels {
		labels[label] = true
	}
	for _, key := range slices.Sorted(maps.Keys(paths)) {
		k := paths[key]
		if k.isNum {
			if err := m.addNumber(f, k.path); err != nil {
				return nil, err
			}
		}
		if k.isText {
			label := promName(strings.Join(k.path, "_"))
			if len(k.path) == 0 {
				label = "value"
			}
			for labels[label] { // a key field, or another text, has the name
				label += "_"
			}
			labels[label] = true
			f.texts = append(f.texts, text{k.path, label})
		}
	}
	if _, taken := f.numbers[m.name+infoSuffix]; taken && len(f.texts) > 0 {
		f.clash[m.name+infoSuffix] = fmt.Sprintf("the field info and the texts of dataset %s", m.of)
	}
	return f, nil
}

func (m *mapped) addNumber(f *fields, path []string) error {
	name := m.name
	if len(path) > 0 {
		name += "_" + promName(strings.Join(path, "_"))
	}
	if other := f.numbers[name]; other != nil {
		f.clash[name] = fmt.Sprintf("the fields %s and %s of dataset %s", strings.Join(other.path, "."), strings.Join(path, "."), m.of)
		return nil
	}
	n, err := m.number(path)
	f.numbers[name] = n
	return err
}

// number returns the number at a path. It is made once, because descriptors of messages are large.
func (m *mapped) number(path []string) (*number, error) {
	key := strings.Join(path, "\x00")
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.numbers[key]; n != nil {
		return n, nil
	}
	field, err := dynamic.NewField(strings.Join(path, "."), m.options)
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
	m.numbers[key] = &number{path, schema}
	return m.numbers[key], nil
}

// promName returns a name with an underscore for each character that PromQL would need quotes for.
func promName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' {
			return c
		}
		return '_'
	}, name)
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
