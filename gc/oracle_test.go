package gc

import (
	"strings"
	"time"
)

// A rule is the meaning of a policy, implemented a second time as simply as possible, for comparison. It is built
// together with a Policy and never simplified.
type rule struct {
	kind     string // "never", "age", "versions", "any", "all"
	age      time.Duration
	versions int
	sub      []rule
}

// removes reports whether the rule removes a cell with this age and this number of newer cells in its column.
func (r rule) removes(age time.Duration, newer int) bool {
	switch r.kind {
	case "age":
		return age > r.age
	case "versions":
		return newer >= r.versions
	case "any":
		for _, s := range r.sub {
			if s.removes(age, newer) {
				return true
			}
		}
		return false
	case "all":
		for _, s := range r.sub {
			if !s.removes(age, newer) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// policy builds the rule with the constructors.
func (r rule) policy() Policy {
	sub := make([]Policy, len(r.sub))
	for i, s := range r.sub {
		sub[i] = s.policy()
	}
	switch r.kind {
	case "age":
		return MaxAge(r.age)
	case "versions":
		return MaxVersions(r.versions)
	case "any":
		return Any(sub...)
	case "all":
		return All(sub...)
	default:
		return Never()
	}
}

// text returns the rule in cbt's syntax, unsimplified; cbt has no never within a rule.
func (r rule) text() string {
	if r.kind == "any" || r.kind == "all" {
		var parts []string
		for _, s := range r.sub {
			parts = append(parts, s.text())
		}
		return "(" + strings.Join(parts, map[string]string{"any": " || ", "all": "&&"}[r.kind]) + ")"
	}
	return r.policy().String()
}

func (r rule) has(kind string) bool {
	for _, s := range r.sub {
		if s.has(kind) {
			return true
		}
	}
	return r.kind == kind
}

// ruleFrom makes a rule from any bytes: ages of 1 to 8 seconds, 1 to 8 versions, up to 4 joined rules, nested up to
// depth.
func ruleFrom(data *[]byte, depth int) rule {
	if len(*data) == 0 {
		return rule{kind: "never"}
	}
	b := (*data)[0]
	*data = (*data)[1:]
	n := int(b>>3)%8 + 1
	switch {
	case b&7 == 0:
		return rule{kind: "never"}
	case b&7 <= 2 || depth == 0:
		return rule{kind: "age", age: time.Duration(n) * time.Second}
	case b&7 <= 4:
		return rule{kind: "versions", versions: n}
	}
	r := rule{kind: "any"}
	if b&7 == 7 {
		r.kind = "all"
	}
	for range n%4 + 1 {
		r.sub = append(r.sub, ruleFrom(data, depth-1))
	}
	return r
}
