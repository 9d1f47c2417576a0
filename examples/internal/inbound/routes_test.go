package inbound

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"
)

func TestMatch(t *testing.T) {
	rs, err := ParseRoutes(strings.NewReader(`
# comments and empty lines are skipped

v1/+tenant/+device/data dataset=data key=device time=arrival
v1/+tenant/# dataset=rest key=kind time=ts,ms
+/+tenant dataset=short key=kind time=ts
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		topic, dataset string
		names          map[string]string
	}{
		{"v1/acme/t1/data", "data", map[string]string{"tenant": "acme", "device": "t1"}},
		{"v1/acme//data", "data", map[string]string{"tenant": "acme", "device": ""}},
		{"v1/acme/t1/data/x", "rest", map[string]string{"tenant": "acme"}},
		{"v1/acme", "rest", map[string]string{"tenant": "acme"}},
		{"v2/acme", "short", map[string]string{"tenant": "acme"}},
		{"v2/acme/x", "", nil},
		{"v1", "", nil},
		{"", "", nil},
		{"/v1/acme", "", nil},
	} {
		r, names := rs.Match(test.topic)
		got := ""
		if r != nil {
			got = r.dataset
		}
		if got != test.dataset || !maps.Equal(names, test.names) {
			t.Errorf("%q: dataset %q and %v, want %q and %v", test.topic, got, names, test.dataset, test.names)
		}
	}
	if got := strings.Join(rs.Filters(), " "); got != "v1/+/# +/+" {
		t.Errorf("subscriptions %q", got)
	}
}

// TestFilters: a topic that matches several patterns is subscribed to once, if one of them covers the others.
func TestFilters(t *testing.T) {
	for patterns, want := range map[string]string{
		"a/+x b/+x":           "a/+ b/+",
		"a/b a/+x":            "a/+",
		"a/+x a/b":            "a/+",
		"a/# a a/b a/+x/c":    "a/#",
		"+/# a/b +x":          "+/#",
		"+/# $SYS/a $SYS/b/#": "+/# $SYS/a $SYS/b/#",
		"+x/a $SYS/a b/a":     "+/a $SYS/a",
		"a/+x/c a/b/+x":       "a/+/c a/b/+",
		"a/b a/b/c a/b/c/#":   "a/b a/b/c/#",
		"+x/# +x":             "+/#",
		"+x/+y +x":            "+/+ +",
	} {
		var lines []string
		for p := range strings.FieldsSeq(patterns) {
			lines = append(lines, p+" dataset=d key=k time=t,ms tenant=acme")
		}
		rs, err := ParseRoutes(strings.NewReader(strings.Join(lines, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(rs.Filters(), " "); got != want {
			t.Errorf("%s: subscriptions %q, want %q", patterns, got, want)
		}
	}
}

// TestFaultyRoutes: each faulty line is reported with its number.
func TestFaultyRoutes(t *testing.T) {
	for line, want := range map[string]string{
		"a/+x":                                            "key is missing",
		"a/+x key=x time=arrival":                         "dataset is missing",
		"a/+x dataset=d key=x":                            "time is missing",
		"a/+x dataset=d key=x time=t,hours":               "unit",
		"a/+x dataset=d key=x time=arrival,ms":            "unit",
		"a/+x dataset=d key=tenant time=t":                "outside the key",
		"a/+x/+x dataset=d key=x time=t":                  "twice",
		"a/#/b dataset=d key=x time=t":                    "last level",
		"a/b+ dataset=d key=x time=t":                     "inside",
		"a/+x! dataset=d key=x time=t":                    "other bytes",
		"$share/g/a dataset=d key=x time=t":               "$share",
		"a/+dataset dataset=d key=x time=t":               "captures dataset",
		"a/+x dataset=d key=x time=t key=y":               "twice",
		"a/+x dataset=d key=x time=t colour=red":          "unknown word",
		"a/+x dataset= key=x time=t":                      "no value",
		"a/+x dataset=d key=x time=t format=xml":          "format",
		"a/+x dataset=d key=x time=t id=m":                "without count",
		"a/+x dataset=d key=x time=t count=1h":            "identity",
		"a/+x dataset=d key=x time=t count=x id=m":        "duration",
		"a/+x dataset=d key=x time=arrival count=1h id=m": "another time",
		"a/+x dataset=d key=x time=t merge count=1h id=m": "merge",
		"a/+x dataset=d key=x time=arrival,10s":           "needs merge",
		"a/# format=line key=host time=ts":                "ns",
		"a/# format=line dataset=d key=host time=ns":      "line protocol",
		"a/+x dataset=d key=x time=t number=x":            "number or sum",
		"a/+x dataset=d key=x time=t number=t":            "number or sum",
		"a/# format=line key=host time=ns number=x":       "line protocol",
		"a/# format=line key=host time=ns text=x":         "line protocol",
		"a/+x dataset=d key=x time=t text=t":              "text names",
		"a/+x dataset=d key=x time=t text=n number=n":     "text names",
		"a/+x dataset=a/b key=x time=t":                   "",
		"ok/+x dataset=other key=x time=t":                "same topics",
		"b/+x dataset=ok key=y time=t":                    "another key",
	} {
		_, err := ParseRoutes(strings.NewReader("ok/+x dataset=ok key=x time=t\n# comment\n" + line))
		if err == nil || !strings.HasPrefix(err.Error(), "line 3: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one of line 3 with %q", line, err, want)
		}
	}
	if _, err := ParseRoutes(strings.NewReader("# nothing")); err == nil {
		t.Error("a file without routes is accepted")
	}
}

func TestUnixTime(t *testing.T) {
	for _, test := range []struct {
		text string
		unit time.Duration
		want int64 // ns
		ok   bool
	}{
		{"1767225600", time.Second, 1767225600e9, true},
		{"1767225600.5", time.Second, 1767225600.5e9, true},
		{"-0.5", time.Second, -5e8, true},
		{"-1.25", time.Second, -125e7, true},
		{"1.0000000019", time.Second, 1000000001, true},
		{"1.5", time.Nanosecond, 1, true},
		{"9223372036854775807", time.Nanosecond, math.MaxInt64, true},
		{"9223372036854775808", time.Nanosecond, 0, false},
		{"1e400", time.Second, 0, false},
		{"", time.Second, 0, false},
	} {
		got, err := unixTime(test.text, test.unit)
		if (err == nil) != test.ok || test.ok && got.Time().UnixNano() != test.want {
			t.Errorf("%s in %v: %v, %v, want %d ns, ok %v", test.text, test.unit, got.Time().UnixNano(), err, test.want, test.ok)
		}
	}
}
