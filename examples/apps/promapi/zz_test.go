package main

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	"github.com/klauspost/compress/snappy"
)

func TestZZ(t *testing.T) {
	s := plain(t)
	s.put("a", line("m", []string{"a", "b"}, 1, 2))
	show := func(path string, pairs ...string) { t.Helper(); c, b := s.get(path, pairs...); t.Log(path, pairs, c, b) }
	show("label/__name__/values", "match[]", "nosuch")
	show("label/__name__/values", "match[]", `{__name__=~"nosuch|m"}`)
	show("label/__name__/values", "match[]", `{__name__=~"nosuch|m",a="b"}`)
	show("label/__name__/values", "match[]", `{__name__=~"nosuch|m",a=""}`)
	show("series", "match[]", "m", "start", "-1000000", "end", "-900000")
	show("series", "match[]", "m", "start", "10", "end", "900000")
	show("series", "match[]", "m", "start", "-100", "end", "-50")
	show("label/__name__/values", "start", "10", "end", "900000")
	show("label/a/values", "start", "-1000000", "end", "-900000")
	// odd names
	for _, n := range []string{"a\x00b", "a#b/c%", "é\"x", "{}", "\n", " "} {
		s.put("a", line(n, []string{"x\x00=,\\", "\x00,=\\}", "Z", "1"}, 1, 2))
		c, b := s.get("series", "match[]", `{__name__="`+strings.NewReplacer("\x00", `\x00`, `"`, `\"`, "\n", `\n`).Replace(n)+`"}`)
		t.Logf("%q %d %s", n, c, b)
	}
	show("label/__name__/values")
	show("query", "query", `{__name__="`+strings.Repeat("x", 5000)+`"}`, "time", "100")
	show("query", "query", `{__name__=~"`+strings.Repeat("x", 5000)+`|m"}`, "time", at(0))
	show("query", "query", `{__name__="\xff"}`, "time", "100")
	// zero time
	show("query", "query", "zero", "time", "0")
	s.put("a", prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "zero"}}, Samples: []prompb.Sample{{Value: 7}}})
	show("query", "query", "zero", "time", "0")
	show("metadata", "metric", strings.Repeat("x", 5000))
	for _, q := range []*prompb.Query{query(1<<62, 1<<62+5, "__name__", "m"), query(-1<<63, 1<<63-1, "__name__", "m"), query(9223372036854775, 9223372036854776, "__name__", "m"), query(1<<63-1, 1<<63-1, "__name__", "m")} {
		w := s.remoteRead("a", &prompb.ReadRequest{Queries: []*prompb.Query{q}})
		if w.Code == 200 {
			t.Log(w.Code, texts(t, w.Body.Bytes()))
		} else {
			t.Log(w.Code, w.Body)
		}
	}
	_ = snappy.Encode
	show("query", "query", `m offset -1h`, "time", at(-3600))
	show("query", "query", `m[1m] @ `+at(15), "time", "5")
	show("query", "query", `m @ end()`, "time", at(15))
	show("query_range", "query", `m`, "start", at(0), "end", at(30), "step", "0.0015")
	show("query", "query", "m", "time", at(15), "lookback_delta", "0.0005")
	show("query", "query", "m", "time", at(16), "lookback_delta", "1ms")
	show("query", "query", "m", "time", at(15), "lookback_delta", "1ms")
	show("query", "query", "m", "time", at(15), "limit", "0")
	show("query", "query", `{"m"}`, "time", at(15))
	show("query", "query", `{a!="x",__name__!~"z.*"}`, "time", at(15))
	show("query", "query", `count({a!="x",__name__!~"z.*"}[1y])`, "time", at(15))
}
