package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestPointsOfCenturies: every query answers where samples are of the years 2400 and 58803, in datasets of other
// programs too.
func TestPointsOfCenturies(t *testing.T) {
	schema, err := defineProm(0)
	if err != nil {
		t.Fatal(err)
	}
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, schema, recorded)
	year2400, far := time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(58803, 2, 28, 1, 2, 3, 0, time.UTC)
	raw := func(dataset, tag, rest string) {
		t.Helper()
		newest := ""
		var row bigtable.Row
		err := table.ReadRows(t.Context(), bigtable.PrefixRange("acme#"+dataset+"#"+rest), func(r bigtable.Row) bool { // the first row is the newest
			newest, row = r.Key(), r
			return false
		})
		if err != nil || newest == "" {
			t.Fatalf("no row of %s: %v", dataset, err)
		}
		m := bigtable.NewMutation()
		m.Set("keep", "p:"+tag, bigtable.Timestamp(far.UnixMilli()*1000), row["keep"][0].Value)
		key := newest[:len(newest)-19] + fmt.Sprintf("%019d", (1<<63-1)-far.UnixMilli())
		if err := table.Apply(t.Context(), key, m); err != nil {
			t.Fatal(err)
		}
	}
	s := over(t, store, schema, tsdb.WriterOptions{}, someLimits)
	up := line("up", []string{"job", "far"}, 1, 2)
	up.Samples[1].Timestamp = year2400.UnixMilli()
	s.put("a", up)
	raw(promDataset, sampleTag, samplesKind)
	start := time.UnixMilli(start0)
	if status, body := s.get("query", "query", `up{job="far"}`, "time", fmt.Sprint(start.Unix()+60)); status != http.StatusOK || !strings.Contains(body, `"value"`) {
		t.Errorf("query: %d %s; want a value", status, body)
	}
	for _, at := range []string{"2400-01-01T00:01:00Z", fmt.Sprint(far.Unix() + 60), "+058803-02-28T01:03:00Z", "1600-01-01T00:00:00Z"} { // the engine would wrap around
		for _, q := range [][]string{{"query", "query", "up", "time", at}, {"query_range", "query", "up", "start", at, "end", at, "step", "60"}} {
			if status, body := s.get(q[0], q[1:]...); status != http.StatusBadRequest || !strings.Contains(body, "to 2262-04-11T23:47:16.854775807Z") {
				t.Errorf("%v: %d %s; want the times that PromQL has", q, status, body)
			}
		}
	}
	for _, expr := range []string{
		`up @ 13569465600`, `up @ -9000000000`, `max_over_time(up[1h] @ 13569465600)`, `max_over_time(up[1h:1m] @ 13569465600)`, `max_over_time((up @ 13569465600)[1h:1m])`,
		`up @ 6000000000 offset 200y`, `max_over_time(up[200y:100d] offset 200y)`, `max_over_time(max_over_time(up[200y:100d])[200y:100d])`, `1 + max_over_time(up[290y] offset -290y)`,
	} {
		if status, body := s.get("query", "query", expr, "time", fmt.Sprint(start.Unix()+60)); status != http.StatusBadRequest || !strings.Contains(body, "PromQL holds at most 292 years") {
			t.Errorf("%s: %d %s; want it refused", expr, status, body)
		}
	}
	for _, word := range []string{"end()", "8000000000"} {
		status, body := s.get("query_range", "query", "up @ "+word, "start", "1800-01-01T00:00:00Z", "end", "2200-01-01T00:00:00Z", "step", "3650d")
		if status != http.StatusBadRequest || !strings.Contains(body, "reaches") {
			t.Errorf("@ %s in 400 years: %d %s; want it refused", word, status, body)
		}
	}
	for _, expr := range []string{
		fmt.Sprintf(`up @ %d`, start.Unix()+60), fmt.Sprintf(`max_over_time(up[1h] @ %d offset -1m)`, start.Unix()), `max_over_time(up[200y:1d])`, `up @ 13569465600`,
	} {
		for _, at := range []int64{start.Unix() + 60, 7258118400} { // the year 2200, from which 2400 is near
			if (expr == `up @ 13569465600`) != (at == 7258118400) {
				continue
			}
			if status, body := s.get("query", "query", expr, "time", fmt.Sprint(at)); status != http.StatusOK || !strings.Contains(body, `"value"`) {
				t.Errorf("%s: %d %s; want a value", expr, status, body)
			}
		}
	}
	for name, value := range map[string]string{"start": "+999999999-01-01T00:00:00Z", "end": "1e17"} {
		if status, body := s.get("series", "match[]", "up", name, value); status != http.StatusBadRequest || !strings.Contains(body, "out of range") {
			t.Errorf("series from or to %s: %d %s", value, status, body)
		}
	}
	for _, q := range [][]string{
		{"query_range", "query", "up", "start", fmt.Sprint(start.Unix()), "end", "2262-01-01T00:00:00Z", "step", "3650d"},
		{"series", "match[]", "up"},
		{"labels"},
		{"label/job/values"},
		{"label/__name__/values"},
		{"series", "match[]", "up", "start", "2300-01-01T00:00:00Z", "end", fmt.Sprint(far.Unix() + 60)},
	} {
		status, body := s.get(q[0], q[1:]...)
		if status != http.StatusOK || !strings.Contains(body, "up") && !strings.Contains(body, "far") && !strings.Contains(body, "job") {
			t.Errorf("%v: %d %.300s", q, status, body)
		}
	}
}
