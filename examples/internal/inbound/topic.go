package inbound

import (
	"fmt"
	"slices"
	"strings"
)

// pattern matches MQTT topics, level by level, and names the levels that it captures.
type pattern struct {
	levels []level
	rest   bool // whether any further levels may follow: a last #
}

// level is one level of a pattern: a text, or any text under a name. A + without a name captures nothing.
type level struct {
	text string
	name string
	any  bool
}

// parsePattern reads a pattern such as v1/+tenant/+device/telemetry.
func parsePattern(text string) (pattern, error) {
	var p pattern
	if strings.HasPrefix(text, "$share/") {
		return p, fmt.Errorf("the pattern %q begins with $share, which the service adds for a group", text)
	}
	for part := range strings.SplitSeq(text, "/") {
		name, captured := strings.CutPrefix(part, "+")
		switch {
		case p.rest:
			return p, fmt.Errorf("in the pattern %q, # is not the last level", text)
		case part == "#":
			p.rest = true
			continue
		case strings.ContainsAny(name, "+#\x00"):
			return p, fmt.Errorf("the level %q has a + or # inside; want a text, +name, + or, as the last, #", part)
		case captured && name != "" && !isName(name):
			return p, fmt.Errorf("the name %q has other bytes than A-Z a-z 0-9 . _ -", name)
		case captured && name != "" && slices.ContainsFunc(p.levels, func(l level) bool { return l.name == name }):
			return p, fmt.Errorf("the pattern %q captures %s twice", text, name)
		case captured:
			p.levels = append(p.levels, level{name: name, any: true})
		default:
			p.levels = append(p.levels, level{text: part})
		}
	}
	return p, nil
}

func isName(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

// names returns the names that the pattern captures.
func (p pattern) names() []string {
	var names []string
	for _, l := range p.levels {
		if l.name != "" {
			names = append(names, l.name)
		}
	}
	return names
}

// match returns the captured levels of a topic, and whether it matches. As in MQTT, # also matches no level at all.
func (p pattern) match(topic string) (captured map[string]string, ok bool) {
	captured = make(map[string]string, len(p.levels))
	more := true
	for _, l := range p.levels {
		if !more {
			return nil, false
		}
		var part string
		if part, topic, more = strings.Cut(topic, "/"); !l.any && part != l.text {
			return nil, false
		}
		if l.name != "" {
			captured[l.name] = part
		}
	}
	return captured, !more || p.rest
}

// covers reports whether every topic that matches other, which is not the same pattern, also matches p.
func (p pattern) covers(other pattern) bool {
	longer := len(other.levels) > len(p.levels) || other.rest
	if len(p.levels) > len(other.levels) || longer && !p.rest {
		return false
	}
	for i, l := range p.levels {
		if o := other.levels[i]; !l.any && (o.any || o.text != l.text) {
			return false
		}
	}
	// A wildcard as the first level does not match topics that begin with $.
	wild := len(p.levels) == 0 || p.levels[0].any
	return !wild || len(other.levels) == 0 || !strings.HasPrefix(other.levels[0].text, "$")
}

// filter returns the subscription of the pattern.
func (p pattern) filter() string {
	parts := make([]string, len(p.levels), len(p.levels)+1)
	for i, l := range p.levels {
		if parts[i] = l.text; l.any {
			parts[i] = "+"
		}
	}
	if p.rest {
		parts = append(parts, "#")
	}
	return strings.Join(parts, "/")
}
