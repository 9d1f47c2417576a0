package main

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tsdb"
)

// A client without knowledge finds the queries, the datasets and the keys, and the handlers accept what is listed.
func TestDiscovery(t *testing.T) {
	a := newAPI(t)
	for _, device := range []string{"a", "b", "c"} {
		a.put(tsdb.NewEntity("berlin", device), 1)
	}
	a.put(tsdb.NewEntity("hamburg", "a"), 1)

	type listed struct {
		Datasets []shownDataset
		Queries  []query
	}
	got := decode[listed](t, a.get("/v1").body)
	if len(got.Datasets) != 3 || got.Datasets[2].Name != "weather" || strings.Join(got.Datasets[2].Key, " ") != "site device" {
		t.Errorf("datasets %+v", got.Datasets)
	}
	a.get("/v1", "Authorization:").wantProblem(t, unauthorized)
	a.get("/v1?x=1").wantProblem(t, invalidInput)
	open := a.get("/", "Authorization:")
	if root := decode[listed](t, open.body); len(root.Queries) != len(got.Queries) || root.Datasets != nil || strings.Contains(open.body, "weather") {
		t.Errorf("/ returns %s; want the queries, and no datasets without a token", open.body)
	}

	for _, q := range got.Queries {
		// ask sends valid parameters, except one.
		ask := func(name string) problem {
			good := url.Values{}
			if q.Key == wholeKey {
				good = url.Values{"site": {"berlin"}, "device": {"a"}}
			}
			if slices.Contains(q.Parameters, "every") {
				good["every"] = []string{"1h"}
			}
			if slices.Contains(q.Parameters, "longer") {
				good["longer"] = []string{"1h"}
			}
			if slices.Contains(q.Parameters, "since") {
				good["since"] = []string{"2026-06-01T00:00:00Z"}
			}
			if slices.Contains(q.Parameters, "from") {
				good["from"], good["to"] = []string{"2026-06-01T00:00:00Z"}, []string{"2026-06-02T00:00:00Z"}
			}
			good[name] = []string{"\x00"}
			body := ""
			if q.Method == http.MethodPost {
				body = `{"keys":[{"site":"a","device":"b"}]}`
			}
			return decode[problem](t, a.do(q.Method, strings.Replace(q.Path, "{dataset}", "weather", 1)+"?"+good.Encode(), body).body)
		}
		for _, name := range append(q.Parameters, "timeout") {
			if p := ask(name); p.Field != name && p.Type != problemTypes+badCursor.name {
				t.Errorf("%s %s lists the parameter %s, but does not read it: %+v", q.Method, q.Path, name, p)
			}
		}
		if p := ask("nonsense"); !strings.Contains(p.Field, "nonsense") {
			t.Errorf("%s %s accepts an unknown parameter: %+v", q.Method, q.Path, p)
		}
	}

	a.get("/v1/weather/keys").want(t, 200, `{"keys":[{"site":"berlin","device":"a"},{"site":"berlin","device":"b"},{"site":"berlin","device":"c"},{"site":"hamburg","device":"a"}]}`)
	first := a.get("/v1/weather/keys?site=berlin&size=2")
	next := decode[struct{ Next string }](t, first.body).Next
	if !strings.HasPrefix(next, "/v1/weather/keys?cursor=") || first.Header.Get("Link") != "<"+next+`>; rel="next"` {
		t.Errorf("the first page is %s, with the Link %s", first.body, first.Header.Get("Link"))
	}
	a.get(next).want(t, 200, `{"keys":[{"site":"berlin","device":"c"}]}`)
	a.get(next, "Authorization: Bearer secret=2").wantProblem(t, badCursor)
	a.get(strings.Replace(next, "site=berlin", "site=hamburg", 1)).wantProblem(t, badCursor)
	a.get("/v1/weather/keys", "Authorization: Bearer secret=2").want(t, 200, `{"keys":[]}`)
	a.get("/v1/weather/keys?site=berlin&device=a").wantProblem(t, invalidInput)
	a.get("/v1/weather/keys?cursor=").wantProblem(t, invalidInput)
}

// The lines that the program prints can be run.
func TestPrintedLines(t *testing.T) {
	for _, demo := range []bool{true, false} {
		var out bytes.Buffer
		printLines(&out, "127.0.0.1:8088", demo)
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "  curl -H ") || strings.Count(line, "'")%2 != 0 || strings.Contains(line, "Bearer demo") != demo {
				t.Errorf("the program prints %s", line)
			}
		}
		if n := strings.Count(out.String(), "\n"); n < 3 {
			t.Errorf("the program printed %d lines", n)
		}
	}
}
