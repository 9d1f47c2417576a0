package main

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

const v3 = "/api/v3/write_lp?db=d"

func tenantOf(name string) tenant.ID { return tenant.MustParse(name) }

// TestVersion3 writes as clients of InfluxDB 3 do.
func TestVersion3(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	for _, tt := range []struct{ query, time string }{
		{"", "1767225600"},
		{"", "1767225600000"},
		{"&precision=auto", "1767225600000000"},
		{"&precision=auto", "1767225600000000000"},
		{"&precision=nanosecond", "1767225600000000000"},
		{"&precision=microsecond&accept_partial=true", "1767225600000000"},
		{"&precision=millisecond&no_sync=true", "1767225600000"},
		{"&precision=second&no_sync=false", "1767225600"},
		{"&precision=ms", "1767225600000"},
	} {
		want(t, tt.query, r.post(v3+tt.query, "cpu,host=a x=1 "+tt.time), 204)
		r.stored(t, "cpu", acme, start, "{x=1}", "a")
		if _, err := r.repository(t, "cpu", acme).DeleteRange(t.Context(), tsdb.NewEntity("a"), tsdb.AllTime()); err != nil {
			t.Fatal(err)
		}
	}
	for query, why := range map[string]string{
		"&precision=h":          "precision must be auto, nanosecond",
		"&accept_partial=false": "accept_partial=false is not supported",
		"&accept_partial=x":     "accept_partial",
		"&no_sync=x":            "no_sync",
		"&consistent=x":         "consistent",
	} {
		want(t, query, r.post(v3+query, "cpu,host=a x=1"), 400, why)
	}
	before := time.Now()
	want(t, "no time", r.post(v3, "cpu,host=now x=1"), 204)
	if p, err := r.repository(t, "cpu", acme).Latest(t.Context(), tsdb.NewEntity("now")); err != nil || p.Time.Before(before) {
		t.Errorf("a line without a time is stored as %v, %v", p, err)
	}
}

// TestVersion3Errors: the answer has the form that clients of InfluxDB 3 parse, with each refused line.
func TestVersion3Errors(t *testing.T) {
	r := newRig(t, ample, "-key", "cpu=host")
	got := r.post(v3, "cpu,host=a x=1 1767225600\nnonsense\ncpu,host=b x=1 1767225600\ncpu x=1 1767225600")
	want(t, "two bad lines", got, 400)
	var answer struct {
		Error string
		Data  []struct {
			Number  int    `json:"line_number"`
			Message string `json:"error_message"`
		}
	}
	if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error != "partial write of line protocol occurred" || len(answer.Data) != 2 || answer.Data[0].Number != 2 || answer.Data[1].Number != 4 {
		t.Errorf("the answer is %s", got.Body)
	}
	r.stored(t, "cpu", acme, start, "{x=1}", "a")
	r.stored(t, "cpu", acme, start, "{x=1}", "b")
	want(t, "without a token", r.post(v3, "cpu,host=a x=1", func(req *http.Request) { req.Header.Del("Authorization") }), 401, "error", "token")
}
