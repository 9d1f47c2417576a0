package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
)

var knownEntities = flag.Int("known.entities", 300/testkit.Stride(5), "how many entities TestKnownMetrics has")

// unlisted keeps the fields of points out of the lists of fields, as if programs without these had written the points.
func unlisted(s *stand) {
	s.Helper()
	in, err := inside.Of(s.store).Internals()
	if err != nil {
		s.Fatal(err)
	}
	in.Fields = nil
}

// list returns what an address of lists answers.
func list[T any](s *stand, path string, pairs ...string) (data []T) {
	s.Helper()
	w := s.send(httptest.NewRequest("GET", "/api/v1/"+path+"?"+form(pairs).Encode(), nil), "a")
	var body struct{ Data []T }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 200 {
		s.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return body.Data
}

// TestKnownMetrics: each entity sends three fields of forty in turn, so the newest points of all have three. The lists
// have all metrics and series, and a query finds each of them.
func TestKnownMetrics(t *testing.T) {
	const fields, each = 40, 3
	limits := someLimits
	limits.series, limits.samples, limits.timeout = 1_000_000, 50_000_000, 10*time.Minute
	s := mappedOver(t, limits, recorded)
	begin, turns := time.UnixMilli(start0), (fields+each-1)/each
	var points []tsdb.Point[codec.Record]
	for turn := range turns {
		for e := range *knownEntities {
			var record []codec.Field
			for i := turn * each; i < min(fields, (turn+1)*each); i++ {
				record = append(record, codec.Field{Name: fmt.Sprintf("f%02d", i), Value: codec.Float(float64(e) + float64(i)/64)})
			}
			points = append(points, tsdb.Point[codec.Record]{Entity: tsdb.NewEntity(fmt.Sprintf("e%04d", e)), Time: begin.Add(time.Duration(turn) * time.Second), Value: codec.NewRecord(record...)})
		}
	}
	for part := range slices.Chunk(points, 5000) {
		putPoints(t, s, recorded, acme, part...)
	}
	var want []string
	for i := range fields {
		want = append(want, fmt.Sprintf("rec_f%02d", i))
	}
	began := time.Now()
	names := slices.DeleteFunc(list[string](s, "label/__name__/values"), func(name string) bool { return !strings.HasPrefix(name, "rec_") })
	t.Logf("%d names in %v", len(names), time.Since(began))
	if !slices.Equal(names, want) {
		t.Errorf("the metrics are %q, want %q", names, want)
	}
	if labels := list[string](s, "labels"); !slices.Contains(labels, "id") {
		t.Errorf("the labels are %q, want id", labels)
	}
	span := []string{"start", fmt.Sprint(start0 / 1000), "end", fmt.Sprint(start0/1000 + 60)}
	began = time.Now()
	series := map[string]map[string]bool{}
	for _, one := range list[map[string]string](s, "series", append(span, "match[]", `{__name__=~"rec_.*"}`)...) {
		name := one["__name__"]
		if series[name] == nil {
			series[name] = map[string]bool{}
		}
		series[name][one["id"]] = true
	}
	t.Logf("the series of all in %v", time.Since(began))
	began = time.Now()
	for i, name := range want {
		if len(series[name]) != *knownEntities {
			t.Errorf("%s has %d series, want %d", name, len(series[name]), *knownEntities)
		}
		got := s.instant(name, begin.Add(time.Minute))
		if len(got) != *knownEntities {
			t.Errorf("an instant query of %s finds %d series, want %d", name, len(got), *knownEntities)
		}
		for id, x := range got {
			var e int
			if _, err := fmt.Sscanf(id, "e%d", &e); err != nil || x != fmt.Sprint(float64(e)+float64(i)/64) {
				t.Fatalf("%s of %s is %s", name, id, x)
			}
		}
	}
	t.Logf("%d instant queries of %d series each in %v", fields, *knownEntities, time.Since(began))
}

// instant returns the values of an instant query by the label id.
func (s *stand) instant(query string, at time.Time) map[string]string {
	s.Helper()
	code, text := s.get("query", "query", query, "time", fmt.Sprint(at.Unix()))
	var body struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || code != 200 {
		s.Fatalf("%s: %d %s", query, code, text)
	}
	found := map[string]string{}
	for _, one := range body.Data.Result {
		found[one.Metric["id"]], _ = one.Value[1].(string)
	}
	return found
}
