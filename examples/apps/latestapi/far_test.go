package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestPointsOfCenturies: every query answers where points are of the years 2400 and 58803, in JSON and in CSV.
func TestPointsOfCenturies(t *testing.T) {
	a := newAPI(t)
	far := tsdb.MustDefine("far", tsdb.Key("site", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{Precision: tsdb.Milliseconds})
	if err := a.store.Ensure(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	a.server.datasets["far"] = show(a.store, far, []window.Measure[Reading]{{Name: "temp_c", Of: tempC}})
	e := tsdb.NewEntity("berlin", "roof-7")
	for _, at := range []time.Time{noon, time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if err := far.For(a.store, acme).Put(t.Context(), e, at, Reading{TempC: num(1)}); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Date(58803, 2, 28, 1, 2, 3, 0, time.UTC)
	m := bigtable.NewMutation()
	m.Set("keep", "p:json", bigtable.Timestamp(at.UnixMilli()*1000), []byte(`{"temp_c":3}`))
	if err := a.table.Apply(t.Context(), fmt.Sprintf("acme#far#berlin#roof-7#%019d", (1<<63-1)-at.UnixMilli()), m); err != nil {
		t.Fatal(err)
	}
	last := url.QueryEscape("+100000-01-01T00:00:00Z")
	span := "&from=1970-01-01&to=" + last
	const key = "?site=berlin&device=roof-7"
	for path, shows := range map[string]bool{
		"latest" + key: true, "group?site=berlin": true, "history" + key: true, "range?site=berlin" + span: true, "silent?since=" + last: true,
		"history" + key + "&from=" + url.QueryEscape("+058803-02-28T01:02:03Z"): true,
		"windows" + key + span + "&every=9996mo":                                false, "windows" + key + span + "&every=1h&aggregates=integral,last": false,
		"groups?site=berlin&every=9996mo" + span: false, "chart" + key + span + "&measure=temp_c&columns=5": true, "outages" + key + span + "&longer=1h": true,
		"uptime" + key + span + "&longer=1h&every=9996mo": false,
	} {
		for _, kind := range []string{asJSON, asCSV} {
			got := a.get("/v1/far/"+path, "Accept: "+kind)
			if got.StatusCode == http.StatusNotAcceptable {
				continue
			}
			ok := json.Valid([]byte(got.body))
			if kind == asCSV {
				rows, err := csv.NewReader(strings.NewReader(got.body)).ReadAll()
				ok = err == nil && len(rows) > 1
			}
			if got.StatusCode != http.StatusOK || !ok || shows && !strings.Contains(got.body, "+058803-02-28T01:02:03Z") {
				t.Errorf("%s as %s: %d %.300s; want the point of the year 58803: %v", path, kind, got.StatusCode, got.body, shows)
			}
		}
	}
	keys := `{"keys":[{"site":"berlin","device":"roof-7"}]}`
	if got := a.do(http.MethodPost, "/v1/far/align?from=1970-01-01&to="+last, keys); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"time":"+058803-02-28T01:02:03Z"`) {
		t.Errorf("align: %d %.300s", got.StatusCode, got.body)
	}
	if got := a.do(http.MethodPost, "/v1/far/latest", keys); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"time":"+058803-02-28T01:02:03Z"`) {
		t.Errorf("the latest of several: %d %.300s", got.StatusCode, got.body)
	}
}

// TestDatesAreInTheZone: with a zone, dates begin and end with its days.
func TestDatesAreInTheZone(t *testing.T) {
	a := newAPI(t)
	for query, want := range map[string]int{
		"every=1d&zone=Asia/Kolkata&from=2026-11-21&to=2026-11-23": 2, "every=1h&zone=Europe/Berlin&from=2026-03-29&to=2026-03-30": 23,
		"every=1h&zone=Europe/Berlin&from=2026-10-25&to=2026-10-26": 25, "every=1h&from=2026-10-25&to=2026-10-26T01:00": 25,
	} {
		got := a.get("/v1/meters/windows?street=main-street&meter=m-17&gaps=null&" + query)
		var answer struct{ Buckets []struct{ Partial bool } }
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || len(answer.Buckets) != want {
			t.Errorf("%s: %d windows, %v; want %d: %.200s", query, len(answer.Buckets), err, want, got.body)
		}
		for _, b := range answer.Buckets {
			if b.Partial {
				t.Errorf("%s: a window is partial", query)
			}
		}
	}
}
