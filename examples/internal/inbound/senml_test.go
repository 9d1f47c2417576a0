package inbound

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestSenML resolves the base fields of packs, as RFC 8428 says.
func TestSenML(t *testing.T) {
	store, _ := tsdbtest.Open(t, tsdbtest.Options{})
	const arrival = "2026-01-01T00:01:18.0000009Z"
	for i, test := range []struct {
		payload string
		want    []string
		fault   string
	}{
		{`[{"n":"a","v":1}]`, []string{`a ` + arrival + ` {"v":1}`}, ""},
		{`[{"n":"a","t":-78.5,"v":1.5}]`, []string{`a 2025-12-31T23:59:59.5000009Z {"v":1.5}`}, ""},
		{`[{"bn":"d:","bt":1.276020076001e+09,"bu":"A","bver":5,"n":"v","u":"V","v":120.1},{"n":"c","t":-5,"v":1.2},{"n":"c","v":1.3}]`, []string{
			`d:v 2010-06-08T18:01:16.001Z {"u":"V","v":120.1}`, `d:c 2010-06-08T18:01:11.001Z {"u":"A","v":1.2}`, `d:c 2010-06-08T18:01:16.001Z {"u":"A","v":1.3}`,
		}, ""},
		{`[{"bn":"d:","bt":1276020076},{"n":"a","v":1},{"bn":"e","t":1,"vs":"x"}]`, []string{`d:a 2010-06-08T18:01:16Z {"v":1}`, `e 2010-06-08T18:01:17Z {"vs":"x"}`}, ""},
		{`[{"bv":20,"bs":100,"n":"a","t":1276020076,"v":0.5},{"n":"b","t":1276020076,"vb":true},{"n":"c","t":1276020076,"s":5}]`, []string{
			`a 2010-06-08T18:01:16Z {"s":100,"v":20.5}`, `b 2010-06-08T18:01:16Z {"s":100,"vb":true}`, `c 2010-06-08T18:01:16Z {"s":105}`,
		}, ""},
		{`[{"bn":"d","bt":1276020076}]`, nil, ""},
		{`{"n":"a","v":1}`, nil, "want an array"},
		{`[1]`, nil, "record 1 is no object"},
		{`[{"n":7,"v":1}]`, nil, `"n" is 7`},
		{`[{"n":"a","v":1,"t":"x"}]`, nil, `"t" is x`},
		{`[{"bt":1e300,"n":"a","t":1,"v":1}]`, nil, "the time"},
		{`[{"n":"a","t":-1e300,"v":1}]`, nil, "the time"},
		{`[{"v":1}]`, nil, `"n" is missing`},
		{`[{"bn":"` + strings.Repeat("x", 5000) + `","n":"a","v":1}]`, nil, "name"},
		{`[]`, nil, "0 objects"},
	} {
		r, ds := route(t, store, fmt.Sprintf("a/+d dataset=s%d key=n format=senml", i))
		got, err := r.texts(t, ds, "a/t1", test.payload)
		for j := range got {
			got[j] = strings.NewReplacer(`"tag:d":"t1",`, "", `,"tag:d":"t1"`, "").Replace(got[j])
		}
		switch {
		case test.fault == "" && (err != nil || !slices.Equal(got, test.want)):
			t.Errorf("%s: %q and %v, want %q", test.payload, got, err, test.want)
		case test.fault != "" && (err == nil || !IsFinal(err) || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("%.100s: %q and the error %.300v, want a final one with %q", test.payload, got, err, test.fault)
		}
	}
	for _, words := range []string{"time=t,s", "each=x", "into=x", "zone=UTC", "count=1h id=n"} {
		if _, err := ParseRoute("a", "dataset=d", "key=n", "format=senml", words); err == nil {
			t.Errorf("%s is accepted for SenML", words)
		}
	}
}
