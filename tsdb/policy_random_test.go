package tsdb_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/gc"
)

// meaning is a policy on points, evaluated without package gc.
type meaning struct {
	join  string // any, all, age or never
	age   time.Duration
	under []meaning
}

func (m meaning) removes(old time.Duration) bool {
	switch m.join {
	case "age":
		return old > m.age
	case "any":
		for _, u := range m.under {
			if u.removes(old) {
				return true
			}
		}
	case "all":
		for _, u := range m.under {
			if !u.removes(old) {
				return false
			}
		}
		return true
	}
	return false
}

func (m meaning) policy() gc.Policy {
	var under []gc.Policy
	for _, u := range m.under {
		under = append(under, u.policy())
	}
	switch m.join {
	case "age":
		return gc.MaxAge(m.age)
	case "any":
		return gc.Any(under...)
	case "all":
		return gc.All(under...)
	}
	return gc.Never()
}

func (m meaning) String() string {
	switch m.join {
	case "age":
		return m.age.String()
	case "never":
		return m.join
	}
	var words []string
	for _, u := range m.under {
		words = append(words, u.String())
	}
	return fmt.Sprintf("%s(%s)", m.join, strings.Join(words, ","))
}

// ages returns the ages in the policy. What it removes changes at these ages.
func (m meaning) ages() (out []time.Duration) {
	if m.join == "age" {
		return []time.Duration{m.age}
	}
	for _, u := range m.under {
		out = append(out, u.ages()...)
	}
	return out
}

// randomMeaning returns a policy of at most this many levels.
func randomMeaning(rnd *rand.Rand, levels int) meaning {
	if n := rnd.IntN(10); levels == 0 || n < 4 {
		if n == 0 {
			return meaning{join: "never"}
		}
		ages := []time.Duration{time.Second, 7 * time.Second, time.Minute, time.Hour, time.Hour + time.Second, 26 * time.Hour, 7 * 24 * time.Hour, 90 * 24 * time.Hour}
		return meaning{join: "age", age: ages[rnd.IntN(len(ages))]}
	}
	m := meaning{join: []string{"any", "all"}[rnd.IntN(2)]}
	for range 1 + rnd.IntN(3) {
		m.under = append(m.under, randomMeaning(rnd, levels-1))
	}
	return m
}
