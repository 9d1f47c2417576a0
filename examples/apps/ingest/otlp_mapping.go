package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemark-go/tidemark/examples/internal/edge"
	"github.com/tidemark-go/tidemark/examples/internal/inbound"
)

// mapping says in which dataset and under which key the data points of a metric are stored. The zero mapping stores
// none.
//
// A file has lines of two kinds, and comments after #:
//
//	store METRIC… in DATASET by ATTRIBUTE…
//	drop ATTRIBUTE…
//
// An attribute of the data point is written as it is, one of the resource or the scope with "resource." or "scope."
// before it; scope.name and scope.version are the scope's own. Metrics and dropped attributes may end with *. A last *
// after by stands for all attributes that are neither dropped nor named before it, a last *hash for a hash of them, of
// the metric and of its kind. The first line that names a metric decides.
type mapping struct {
	drops []string
	rules []rule
}

// rule is a store line.
type rule struct {
	metrics []string
	dataset string
	key     []string
}

// maxRules bounds the lines of a mapping: each metric of a request is compared with all of them.
const maxRules = 1000

// readMapping reads a mapping file, and adds its datasets to the keys. Its errors name the line.
func readMapping(name string, keys inbound.Keys) (*mapping, error) {
	m := &mapping{}
	if err := edge.Lines(name, func(text string) error { return m.add(text, keys) }); err != nil {
		return nil, err
	}
	if len(m.rules) == 0 {
		return nil, fmt.Errorf("%s has no store line, so every metric would be refused", name)
	}
	return m, nil
}

func (m *mapping) add(text string, keys inbound.Keys) error {
	words := strings.Fields(text)
	if len(m.drops)+len(m.rules) >= maxRules {
		return fmt.Errorf("more than %d rules", maxRules)
	}
	switch words[0] {
	case "store":
		return m.store(words[1:], keys)
	case "drop":
		return m.drop(words[1:])
	}
	return fmt.Errorf("the line begins with %.32q; want store or drop", words[0])
}

func (m *mapping) store(words []string, keys inbound.Keys) error {
	in, by := slices.Index(words, "in"), slices.Index(words, "by")
	if in < 1 || by != in+2 || by == len(words)-1 {
		return errors.New("want store METRIC… in DATASET by ATTRIBUTE…")
	}
	r := rule{metrics: words[:in], dataset: words[in+1], key: words[by+1:]}
	if strings.Contains(r.dataset, "*") {
		return fmt.Errorf("the dataset %.32q contains *; want one name", r.dataset)
	}
	for i, p := range r.metrics {
		if err := checkPattern(p); err != nil {
			return err
		}
		for _, former := range m.rules {
			if q := covering(former.metrics, p); q != "" {
				return fmt.Errorf("the metrics %s are stored in %s already, because of %s in a line before", p, former.dataset, q)
			}
		}
		if q := covering(r.metrics[:i], p); q != "" {
			return fmt.Errorf("the metrics %s are named already, by %s", p, q)
		}
	}
	for i, name := range r.key {
		if isOthers(name) {
			continue // its place is checked with the others'
		}
		if err := checkAttribute(name); err != nil {
			return err
		}
		if strings.Contains(name, "*") {
			return fmt.Errorf("the key attribute %s contains *; only * or *hash, at the end, stands for others", name)
		}
		if q := covering(m.drops, r.key[i]); q != "" {
			return fmt.Errorf("the attribute %s is dropped by %s, so it cannot be part of a key", name, q)
		}
	}
	if err := keys.Add(r.dataset, r.key); err != nil {
		return err
	}
	m.rules = append(m.rules, r)
	return nil
}

func (m *mapping) drop(words []string) error {
	if len(words) == 0 {
		return errors.New("want drop ATTRIBUTE…")
	}
	for _, p := range words {
		if err := errors.Join(checkPattern(p), checkAttribute(p)); err != nil {
			return err
		}
		for _, r := range m.rules {
			if i := slices.IndexFunc(r.key, func(name string) bool { return matches(p, name) && !isOthers(name) }); i >= 0 {
				return fmt.Errorf("%s drops the attribute %s, which is part of the key of %s", p, r.key[i], r.dataset)
			}
		}
		m.drops = append(m.drops, p)
	}
	return nil
}

// isOthers reports whether a key field stands for all attributes that are not named.
func isOthers(name string) bool { return name == inbound.OtherTags || name == inbound.OtherHash }

// checkPattern checks that a * is at the end only.
func checkPattern(p string) error {
	if i := strings.IndexByte(p, '*'); i >= 0 && i < len(p)-1 {
		return fmt.Errorf("%s has a * that is not at its end", p)
	}
	return nil
}

func checkAttribute(name string) error {
	for _, prefix := range []string{resourcePrefix, scopePrefix} {
		if name == prefix {
			return fmt.Errorf("%s lacks the attribute's name", name)
		}
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

// rule returns the rule of a metric, or nil.
func (m *mapping) rule(metric string) *rule {
	for i := range m.rules {
		if covering(m.rules[i].metrics, metric) != "" {
			return &m.rules[i]
		}
	}
	return nil
}
