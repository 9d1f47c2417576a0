package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// TestDeepExpressions: an expression of many levels is refused, because the memory of a goroutine that evaluates it is
// bounded, and the program would end.
func TestDeepExpressions(t *testing.T) {
	s := plain(t)
	long := strings.Repeat("a or ", 400) + "a"
	if status, got := s.get("query", "query", long); status != http.StatusOK {
		t.Errorf("an expression of 400 levels: %d %.200s", status, got)
	}
	for name, text := range map[string]string{
		"unary":  strings.Repeat("-", 3000) + "a",
		"parens": strings.Repeat("(", 3000) + "a" + strings.Repeat(")", 3000),
		"binary": strings.Repeat("a+", 3000) + "a",
		"long":   "a" + strings.Repeat(" ", 200_000),
	} {
		for _, path := range []string{"query", "query_range", "query_exemplars", "format_query"} {
			if status, got := s.get(path, "query", text, "start", "0", "end", "1", "step", "1"); status != http.StatusBadRequest || len(got) > 1000 {
				t.Errorf("%s of %s: %d %.200s, want 400", path, name, status, got)
			}
		}
	}
}

// TestFramesOfLargeChunks: clients refuse frames over 50 MB, and read frames of about 1 MB with less memory.
func TestFramesOfLargeChunks(t *testing.T) {
	testkit.Plain(t)
	s := plain(t)
	for i := range 1200 {
		ts := line("m", nil)
		h := &histogram.FloatHistogram{PositiveSpans: []histogram.Span{{Length: 300}}, PositiveBuckets: make([]float64, 300)}
		for j := range h.PositiveBuckets {
			h.PositiveBuckets[j] = math.Sqrt(float64(i * j))
			h.Count += h.PositiveBuckets[j]
		}
		ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(start0+int64(i), h))
		s.put("a", ts)
	}
	w := s.remoteRead("a", &prompb.ReadRequest{
		Queries: []*prompb.Query{query(start0, start0+10_000, "__name__", "m")}, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{prompb.ReadRequest_STREAMED_XOR_CHUNKS},
	})
	frames := 0
	for body := w.Body.Bytes(); len(body) > 0; frames++ {
		n, size := binary.Uvarint(body)
		if n > 3<<19 {
			t.Fatalf("a frame of %d bytes", n)
		}
		body = body[size+4+int(n):]
	}
	if frames < 2 {
		t.Errorf("%d frames of %d bytes, want several", frames, w.Body.Len())
	}
}

// TestTextsOfManyEntities: a list of texts reads a point of each entity, which counts against the limit of samples.
func TestTextsOfManyEntities(t *testing.T) {
	l := someLimits
	l.samples = 5
	s := mappedOver(t, l, truckData)
	for i := range 10 {
		putPoints(t, s, truckData, acme, truckPoint("East", fmt.Sprint(i), start0, "Andy", 1))
	}
	for path, want := range map[string]int{"labels?match[]=trucks_info": 422, "label/driver/values?match[]=trucks_info": 422, "series?match[]=trucks_info{truck=\"1\"}": 200} {
		w := s.send(httptest.NewRequest(http.MethodGet, "/api/v1/"+strings.ReplaceAll(path, `"`, "%22"), nil), "a")
		if w.Code != want {
			t.Errorf("%s: %d %.200s, want %d", path, w.Code, w.Body, want)
		}
	}
}

// TestLongLabels: calls within each other that multiply the length of a label are refused before they take the memory.
func TestLongLabels(t *testing.T) {
	s := filled(t, someLimits)
	nested := func(n int, replacement, from string) string {
		text := "up"
		for range n {
			text = `label_replace(` + text + `, "job", ("` + replacement + `"), "` + from + `", "(.*)")`
		}
		return text
	}
	join := "up"
	for range 20 {
		join = `label_join(` + join + `, "job", ",", "job", "job", "instance")`
	}
	for text, want := range map[string]int{
		nested(40, "$1$1", "job"): 400, nested(6, "$1-$1", "job"): 400, nested(50, "$1", "instance"): 200, nested(3, "$1", "job"): 200, nested(2, "$1$1", "job"): 200,
		join: 400, "1 + sum(" + nested(40, "$1$1", "job") + ")": 400, `label_join(up, "x", "-", "job", "instance")`: 200,
		nested(3, "$1$1", "job") + " or " + nested(3, "x$1$1", "job"): 200,
	} {
		for _, path := range []string{"query", "query_range"} {
			status, got := s.get(path, "query", text, "time", at(0), "start", at(0), "end", at(0), "step", "1")
			if status != want || want == 400 && !strings.Contains(got, "labels of") {
				t.Errorf("%s of %.80s… (%d bytes): %d %.200s, want %d", path, text, len(text), status, got, want)
			}
		}
	}
}
