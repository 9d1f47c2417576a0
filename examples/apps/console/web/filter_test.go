package web

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
)

// TestFilters: which entities a filter chooses.
func TestFilters(t *testing.T) {
	record := codec.NewRecord(
		codec.Field{Name: "battery_pct", Value: codec.Int(15)}, codec.Field{Name: "fault", Value: codec.Bool(true)}, codec.Field{Name: "door", Value: codec.Bool(false)},
		codec.Field{Name: "state", Value: codec.Str("parked")}, codec.Field{Name: "meter", Value: codec.Str("20.5")}, codec.Field{Name: "error", Value: codec.Str("")},
		codec.Field{Name: "count", Value: codec.Int(0)}, codec.Field{Name: "none", Value: codec.ValueOf(nil)}, codec.Field{Name: "two words", Value: codec.Float(-1.5)},
		codec.Field{Name: "silent", Value: codec.Int(7)}, codec.Field{Name: "nan", Value: codec.Float(math.NaN())},
	)
	van := &candidate{[]string{"berlin", "Van-7"}, record, (12 * time.Minute).Seconds() * 1000, func(field string) bool { return field == "fault" || field == "meter" }}
	for filter, want := range map[string]bool{
		"": true, "  ": true, "battery_pct < 20": true, "battery_pct<15": false, "battery_pct <= 15": true, "battery_pct >= 15.5": false, "battery_pct = 15.0": true, "battery_pct != 15": false, "battery_pct == 15": true,
		"fault": true, "not fault": false, "door": false, "not door": true, "fault = true": true, "fault = 1": true, "door = false": true, "count": false, "error": false, "none": false, "state": true, "missing": false, "not missing": true,
		"state = parked": true, "state != parked": false, "state = 'parked'": true, `state = "par"`: false, "state ~ PARK": true, "state contains ark": true, "STATE = parked": false,
		"meter > 20": true, "meter = 20.50": true, "meter = '20.50'": false, "meter = '20.5'": true, "`two words` < -1": true, "missing != 3": false, "missing < 3": false, "none = null": false, "state < 3": false, "nan < 3": false,
		"silent": true, "silent for 10 min": true, "silent > 10m": true, "silent > 15m": false, "silent < 1h": true, "silent >= 0.2 hours": true, "silent for 2 days": false, "`silent` = 7": true,
		"depot = berlin": true, "depot = kiel": false, "van ~ van": true, "name ~ berlin/van": true, "name = berlin/Van-7": true,
		"battery_pct < 20 and silent > 10m": true, "battery_pct < 20 and silent > 10h": false, "battery_pct > 20 or fault": true, "battery_pct > 20 or fault and door": false,
		"state now": true, "fault now": false, "not fault now": true, "meter now > 20": false, "battery_pct NOW < 20": true, "state = now": false, "`now` = 3": false,
		"(battery_pct > 20 or fault) and not door": true, "NOT (fault AND door)": true, "not not fault": true,
	} {
		c, err := parseFilter(filter, []string{"depot", "van"}, 5*time.Minute)
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		if got := c.matches(van); got != want {
			text, _ := json.Marshal(c)
			t.Errorf("%s chooses the van: %v, want %v (%s)", filter, got, want, text)
		}
	}
	c, err := parseFilter("a < 1 and (b or `c d` = x) and not silent and name ~ y and depot = z and a > 0", []string{"depot"}, time.Minute)
	if got := c.fields([]string{"b"}); err != nil || !slices.Equal(got, []string{"b", "a", "c d"}) {
		t.Errorf("the fields are %q, %v", got, err)
	}
}

// TestWrongFilters: an error names the part that is wrong, and what is wanted there.
func TestWrongFilters(t *testing.T) {
	for filter, want := range map[string]string{
		"battery_pct <":             `at "battery_pct <": a value is missing`,
		"battery_pct < and fault":   `at "battery_pct <": a value is missing`,
		"battery_pct << 20":         `at "<<": want one of < <= > >= = != ~`,
		"battery_pct < 20%":         `at "20%": want a number after <`,
		"battery_pct < low":         `at "low": want a number after <`,
		"battery_pct < '20'":        `at "20": want a number after <`,
		"battery_pct 20":            `at "20": want and, or, or the end`,
		"fault and":                 `at "its end": a comparison is missing`,
		"and fault":                 `at "and": want the name of a field`,
		"(fault":                    `at "its end": a ) is missing`,
		"fault)":                    `at ")": want and, or`,
		"()":                        `at ")": want the name of a field`,
		"< 20":                      `at "<": want the name of a field`,
		"'fault'":                   `at "fault": want the name of a field`,
		"state = 'parked":           `at "'parked": the second ' is missing`,
		"silent > 10":               `at "silent > 10": want a length of time after >, as in silent > 10m`,
		"silent for":                `at "silent for": want a length of time`,
		"silent for 10 parsecs":     `at "silent for 10": want a length of time`,
		"silent = 10m":              `at "=": silent is compared by <, <=, > or >=`,
		"depot now":                 `at "now": want and, or`,
		"silent 10m":                `at "10m": want and, or`,
		"name":                      `at "name": want a comparison after it`,
		"name < 3":                  `at "name <": a name is compared by =, != or ~`,
		"`` = 3":                    "field is empty",
		strings.Repeat("not ", 30):  "more than 20 parts",
		strings.Repeat("a or ", 30): "more than 20 parts",
		strings.Repeat("(", 900):    "more than 20 parts",
		strings.Repeat("a", 1001):   "at most 1,000 bytes",
		"battery_pct \x00 < 1":      "want and, or",
		strings.Repeat(". or ", 5) + "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q": "at most 16 names",
	} {
		_, err := parseFilter(filter, []string{"depot"}, time.Minute)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", filter, err, want)
		}
	}
}

// FuzzFilter: no text makes the parser or a filter panic.
func FuzzFilter(f *testing.F) {
	f.Add("battery_pct < 20 and silent > 10m or (not fault and `a b` ~ 'x')")
	van := &candidate{parts: []string{"berlin"}, value: codec.NewRecord(codec.Field{Name: "a", Value: codec.Int(1)}), older: func(string) bool { return true }}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseFilter(text, []string{"depot"}, time.Minute)
		if err != nil {
			if err.Error() == "" {
				t.Errorf("%q: an error without text", text)
			}
			return
		}
		c.matches(van)
		if _, err := json.Marshal(c); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
