package inbound

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Mapping says in which dataset and under which key records with a name are stored: lines of line protocol by their
// measurement, data points of OTLP by their metric. The zero Mapping names none. A line of a pattern file is one of
//
//	store NAME… in DATASET by KEY…
//	drop ATTRIBUTE…
//
// The key has tags of the line, or attributes of the data point; those of its resource or scope begin with "resource."
// or "scope.", and scope.name and scope.version are the scope's own. A ? after one means that the record may lack it.
// The key field "measurement" is the measurement. A last * stands for all attributes that are neither dropped nor named
// before it, a last *hash for a hash of them, of the metric and of its kind. Names and dropped attributes may end with
// *. The first line that names a record decides.
//
// A key with measurement is for lines, one with resource., scope. or *hash for metrics, and any other for both. But
// lines of several measurements need it: without it, their fields of one key and time would be one point.
type Mapping struct {
	drops []string
	rules []nameRule
}

// nameRule is a store line.
type nameRule struct {
	names          []string
	dataset        string
	key            []string
	lines, metrics bool // what it is for
}

// Measurement is the key field that holds the measurement.
const Measurement = "measurement"

// ResourcePrefix and ScopePrefix begin the names of attributes that are not those of the data point itself.
const (
	ResourcePrefix = "resource."
	ScopePrefix    = "scope."
)

// maxRules bounds the lines of a mapping: each record is compared with all of them.
const maxRules = 1000

// isMapping reports whether a line of a pattern file belongs to a Mapping.
func isMapping(words []string) bool { return words[0] == "store" || words[0] == "drop" }

// Add takes a store or drop line, and adds its dataset to the keys.
func (m *Mapping) Add(text string, keys Keys) error {
	words := strings.Fields(text)
	switch {
	case len(words) == 0 || !isMapping(words):
		return fmt.Errorf("the line begins with %.32q; want store or drop", text)
	case len(m.drops)+len(m.rules) >= maxRules:
		return fmt.Errorf("more than %d rules", maxRules)
	case words[0] == "drop":
		return m.drop(words[1:])
	}
	return m.store(words[1:], keys)
}

func (m *Mapping) store(words []string, keys Keys) error {
	in, by := slices.Index(words, "in"), slices.Index(words, "by")
	if in < 1 || by != in+2 || by == len(words)-1 {
		return errors.New("want store NAME… in DATASET by KEY…")
	}
	var key []string
	for _, word := range words[by+1:] {
		key = append(key, strings.Split(word, ",")...)
	}
	r := nameRule{names: words[:in], dataset: words[in+1], key: keyNames(key)}
	if strings.Contains(r.dataset, "*") {
		return fmt.Errorf("the dataset %.32q contains *; want one name", r.dataset)
	}
	if err := m.checkKey(r.key); err != nil {
		return err
	}
	several := len(r.names) > 1 || strings.HasSuffix(r.names[0], "*")
	measured := slices.Contains(r.key, Measurement)
	metric := slices.ContainsFunc(r.key, func(k string) bool {
		return k == OtherHash || strings.HasPrefix(k, ResourcePrefix) || strings.HasPrefix(k, ScopePrefix)
	})
	if measured && metric {
		return errors.New("the key has " + Measurement + ", which lines have, and an attribute or a hash that only metrics have")
	}
	r.lines, r.metrics = measured || !metric && !several, !measured
	if err := m.checkNames(&r); err != nil {
		return err
	}
	if err := keys.Add(r.dataset, key); err != nil {
		return err
	}
	m.rules = append(m.rules, r)
	return nil
}

// checkNames refuses a name that an earlier one covers.
func (m *Mapping) checkNames(r *nameRule) error {
	for i, p := range r.names {
		if err := checkPattern(p); err != nil {
			return err
		}
		for _, former := range m.rules {
			if q := covering(former.names, p); q != "" && (former.lines && r.lines || former.metrics && r.metrics) {
				return fmt.Errorf("%s is stored in %s already, because of %s in a line before", p, former.dataset, q)
			}
		}
		if q := covering(r.names[:i], p); q != "" {
			return fmt.Errorf("%s is named already, by %s", p, q)
		}
	}
	return nil
}

func (m *Mapping) checkKey(key []string) error {
	for _, name := range key {
		if isOthers(name) {
			continue // its place is checked with the others'
		}
		if err := checkAttribute(name); err != nil {
			return err
		}
		if strings.Contains(name, "*") {
			return fmt.Errorf("the key attribute %s contains *; only * or *hash, at the end, stands for others", name)
		}
		if q := covering(m.drops, name); q != "" {
			return fmt.Errorf("the attribute %s is dropped by %s, so it cannot be part of a key", name, q)
		}
	}
	return nil
}

func (m *Mapping) drop(words []string) error {
	if len(words) == 0 {
		return errors.New("want drop ATTRIBUTE…")
	}
	for _, p := range words {
		if err := errors.Join(checkPattern(p), checkAttribute(p)); err != nil {
			return err
		}
		m.drops = append(m.drops, p)
	}
	for _, r := range m.rules {
		if err := m.keeps(r.dataset, r.key); err != nil {
			return err
		}
	}
	return nil
}

// keeps returns an error if a part of a dataset's key is dropped.
func (m *Mapping) keeps(dataset string, key []string) error {
	for _, name := range key {
		if p := covering(m.drops, name); p != "" && !isOthers(name) {
			return fmt.Errorf("%s drops the attribute %s, which is part of the key of %s", p, name, dataset)
		}
	}
	return nil
}

// isOthers reports whether a key field stands for all attributes that are not named.
func isOthers(name string) bool { return name == OtherTags || name == OtherHash }

// checkPattern checks that a * is at the end only.
func checkPattern(p string) error {
	if i := strings.IndexByte(p, '*'); i >= 0 && i < len(p)-1 {
		return fmt.Errorf("%s has a * that is not at its end", p)
	}
	return nil
}

func checkAttribute(name string) error {
	if name == ResourcePrefix || name == ScopePrefix {
		return fmt.Errorf("%s lacks the attribute's name", name)
	}
	return nil
}

// matches reports whether a pattern matches a name, or everything that another pattern matches.
func matches(pattern, name string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return pattern == name || open && strings.HasPrefix(name, prefix)
}

// covering returns the first pattern that matches a name, or "".
func covering(patterns []string, name string) string {
	if i := slices.IndexFunc(patterns, func(p string) bool { return matches(p, name) }); i >= 0 {
		return patterns[i]
	}
	return ""
}

// Metric returns the dataset of a metric, or "".
func (m *Mapping) Metric(name string) string {
	return m.find(name, func(r *nameRule) bool { return r.metrics })
}

// Line returns the dataset of a measurement, or "".
func (m *Mapping) Line(name string) string {
	return m.find(name, func(r *nameRule) bool { return r.lines })
}

func (m *Mapping) find(name string, is func(*nameRule) bool) string {
	for i := range m.rules {
		if r := &m.rules[i]; is(r) && covering(r.names, name) != "" {
			return r.dataset
		}
	}
	return ""
}

// Drops reports whether an attribute is dropped.
func (m *Mapping) Drops(attribute string) bool { return covering(m.drops, attribute) != "" }

// The lines that AddDefaults adds.
const (
	allLines   = "store * in measurements by measurement *"
	allMetrics = "store * in metrics by resource.service.name? *"
)

// AddDefaults adds a line for all metrics if none is for metrics, and one for all lines of line protocol, if they have
// no key otherwise. It leaves out one whose dataset has another key.
func (m *Mapping) AddDefaults(keys Keys, forLines bool) {
	if forLines && !slices.ContainsFunc(m.rules, func(r nameRule) bool { return r.lines }) {
		_ = m.Add(allLines, keys)
	}
	if !slices.ContainsFunc(m.rules, func(r nameRule) bool { return r.metrics }) {
		_ = m.Add(allMetrics, keys)
	}
}
