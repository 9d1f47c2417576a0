package inbound

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func TestMapping(t *testing.T) {
	rs, err := ParseRoutes(strings.NewReader("store system.* in host by resource.host.name? *\nstore http.* in http by a\nstore * in metrics by *\nstore * in measurements by measurement,*"))
	if err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[string]string{"system.cpu.time": "host", "http.server.duration": "http", "x": "metrics"} {
		if got := rs.Mapping().Metric(metric); got != want {
			t.Errorf("the metric %s is stored in %q, want %q", metric, got, want)
		}
		if got := rs.Mapping().Line(metric); got != "measurements" {
			t.Errorf("the measurement %s is stored in %q, want measurements", metric, got)
		}
	}
	if got := fmt.Sprint(rs.Keys()["host"]); got != "[resource.host.name? *]" {
		t.Errorf("the key of host is %s", got)
	}
	// Each faulty text names its line and the fault.
	for text, want := range map[string]string{
		"":                                        "no line has a route",
		"# only\n\n":                              "no line has a route",
		"put a in b by c":                         "line 1: a has no value",
		"\n# x\nstore a in b":                     "line 3: want store NAME",
		"store in b by c":                         "want store NAME",
		"store a in b by":                         "want store NAME",
		"store a in b c by d":                     "want store NAME",
		"store a*b in c by d":                     "a*b has a * that is not at its end",
		"store a in b by c c":                     "the tag c is given twice",
		"store a in b by * c":                     "* is not the last tag",
		"store a in * by c":                       `the dataset "*" contains *`,
		"store a in * by c *hash":                 `the dataset "*" contains *`,
		"store a in b by *hash c":                 "*hash is not the last tag",
		"store a in b by *hash *":                 "*hash is not the last tag",
		"store a in b by c.*":                     "c.* contains *",
		"store a in b by resource.":               "lacks the attribute's name",
		"store a in b,c by d":                     "line 1: ",
		"store a in b by c\nstore d in b by e":    "line 2: the measurement b has a key already",
		"store a in b by c\nstore a in d by e":    "line 2: a is stored in b already",
		"store a* in b by c\nstore ab* in d by e": "line 2: ab* is stored in b already, because of a*",
		"store a* ab in b by c":                   "ab is named already",
		"drop":                                    "want drop ATTRIBUTE",
		"store a in b by measurement resource.x":  "lines have",
		"store a in b by c\nx/+d dataset=b key=d time=arrival": "by a store line and by a route",
		"drop a*b":                      "not at its end",
		"drop c*\nstore a in b by cd":   "line 2: the attribute cd is dropped by c*",
		"store a in b by cd *\ndrop c*": "line 2: c* drops the attribute cd, which is part of the key of b",
	} {
		if _, err := ParseRoutes(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the mapping %q: %v, want an error with %q", text, err, want)
		}
	}
	if _, err := ParseRoutes(strings.NewReader("store a in b by *hash\ndrop *\nstore c in d by *hash")); err != nil {
		t.Errorf("dropped attributes next to a hash of the others: %v", err)
	}
	if _, err := ParseRoutes(strings.NewReader("store a in b by cd *\ndrop *.x")); err == nil {
		t.Error("a pattern that begins with * is accepted")
	}
	many := strings.Repeat("drop a\n", maxRules) + "store a in b by c"
	if _, err := ParseRoutes(strings.NewReader(many)); err == nil || !strings.Contains(err.Error(), "line 1001: more than 1000 rules") {
		t.Errorf("too many rules: %v", err)
	}
}

// TestMeasurements stores lines by rules, and lines of any measurement without a rule.
func TestMeasurements(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	keys := Keys{}
	m := &Mapping{}
	for _, line := range []string{"drop url", "store node_* in node by measurement,host", "store cpu in processors by host cpu?", "store disk* in metric by host"} {
		if err := m.Add(line, keys); err != nil {
			t.Fatal(err)
		}
	}
	ds, err := NewDatasets(t.Context(), store, keys, Options{Mapping: m})
	if err != nil {
		t.Fatal(err)
	}
	defaults, all := &Mapping{}, Keys{}
	defaults.AddDefaults(all, true)
	any, err := NewDatasets(t.Context(), store, all, Options{Mapping: defaults})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		ds         *Datasets
		line, want string
		fault      string
	}{
		{ds, "node_disk_discard_time_seconds_total,host=a,url=x,dev=b counter=1", "node node_disk_discard_time_seconds_total/a {counter=1 tag:dev=\"b\"}", ""},
		{ds, "node_load1,host=a,measurement=mine counter=1", "node node_load1/a {counter=1 tag:measurement=\"mine\"}", ""},
		{ds, "cpu,host=a usage=1", "processors a/- {usage=1}", ""},
		{ds, "cpu,host=a,cpu=0 usage=1", "processors a/0 {usage=1}", ""},
		{ds, "cpu usage=1", "", `"host" is missing`},
		{ds, "disk_io,host=a x=1", "", "disk_io"}, // fields of disk_io and disk_space would be one point
		{any, "node_disk_discard_time_seconds_total,dev=b counter=1", "measurements node_disk_discard_time_seconds_total/dev=b {counter=1}", ""},
		{any, "°C v=1", "measurements °C/- {v=1}", ""},
		{any, "km/h,measurement=x v=1", "measurements km%2Fh/measurement=x {v=1}", ""},
		{any, strings.Repeat("x", 300) + " v=1", "measurements " + strings.Repeat("x", 300) + "/- {v=1}", ""},
	} {
		p, err := test.ds.ParseLine(t.Context(), acme, []byte(test.line), Clock{Now: time.Unix(1767225600, 0)})
		if test.fault != "" {
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%s: %v, want an error with %s", test.line, err, test.fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("%.100s: %v", test.line, err)
			continue
		}
		if got := fmt.Sprintf("%s %v %v", p.Dataset.Name(), p.Entity, p.Record); got != test.want {
			t.Errorf("%.100s: %s, want %s", test.line, got, test.want)
		}
	}
}
