package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

func (s *stand) remoteRead(token string, req *prompb.ReadRequest) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/read", bytes.NewReader(snappy.Encode(nil, message(req))))
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("Content-Type", protobufType)
	return s.send(r, token)
}

func query(from, to int64, pairs ...string) *prompb.Query {
	q := &prompb.Query{StartTimestampMs: from, EndTimestampMs: to}
	for i := 0; i < len(pairs); i += 2 {
		q.Matchers = append(q.Matchers, &prompb.LabelMatcher{Type: prompb.LabelMatcher_RE, Name: pairs[i], Value: pairs[i+1]})
	}
	return q
}

// texts returns the samples of a response to remote read as text: query, labels, then time and value of each.
func texts(t *testing.T, body []byte) (list []string) {
	t.Helper()
	data, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	var response prompb.ReadResponse
	if err := response.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	for i, result := range response.Results {
		for _, ts := range result.Timeseries {
			text := fmt.Sprint(i, nameOf(ts.Labels))
			byTime := map[int64]float64{}
			for _, p := range ts.Samples {
				byTime[p.Timestamp-start0] = p.Value
			}
			for _, p := range ts.Histograms {
				byTime[p.Timestamp-start0] = p.ToFloatHistogram().Count
			}
			for _, t := range slices.Sorted(maps.Keys(byTime)) {
				text += fmt.Sprint(" ", t, "=", byTime[t])
			}
			list = append(list, text)
		}
	}
	return list
}

func nameOf(ls []prompb.Label) (text string) {
	for _, l := range ls {
		text += " " + l.Name + "=" + l.Value
	}
	return text
}

// streamed is texts of a streamed response.
func streamed(t *testing.T, body []byte) (list []string) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(body))
	for {
		n, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return list
		}
		frame := make([]byte, 4+n)
		if _, err := io.ReadFull(in, frame); err != nil {
			t.Fatal(err)
		}
		if crc32.Checksum(frame[4:], crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(frame) {
			t.Fatal("a frame has a wrong checksum")
		}
		var response prompb.ChunkedReadResponse
		if err := response.Unmarshal(frame[4:]); err != nil {
			t.Fatal(err)
		}
		for _, one := range response.ChunkedSeries {
			list = append(list, fmt.Sprint(response.QueryIndex, nameOf(one.Labels))+ofChunks(t, one.Chunks))
		}
	}
}

func ofChunks(t *testing.T, chunks []prompb.Chunk) (text string) {
	t.Helper()
	for _, c := range chunks {
		data, err := chunkenc.FromData(chunkenc.Encoding(c.Type), c.Data)
		if err != nil {
			t.Fatal(err)
		}
		it, first, last := data.Iterator(nil), int64(0), int64(0)
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			if last = it.AtT(); first == 0 {
				first = last
			}
			if kind == chunkenc.ValFloat {
				_, v := it.At()
				text += fmt.Sprint(" ", last-start0, "=", v)
			} else {
				_, h := it.AtFloatHistogram(nil)
				text += fmt.Sprint(" ", last-start0, "=", h.Count)
			}
		}
		if it.Err() != nil || first != c.MinTimeMs || last != c.MaxTimeMs {
			t.Errorf("a chunk from %d to %d says %d to %d (%v)", first, last, c.MinTimeMs, c.MaxTimeMs, it.Err())
		}
	}
	return text
}

// TestRemoteRead: both forms of the response have all samples, through changes of the kind and of the buckets.
func TestRemoteRead(t *testing.T) {
	s := filled(t, someLimits)
	mixed := line("mixed", nil)
	want := "1 __name__=mixed"
	for i := range 500 {
		at := start0 + int64(i)*1000
		buckets := 1 + i/20%7 // grow, and shrink again
		h := &histogram.Histogram{Schema: 1, PositiveSpans: []histogram.Span{{Length: uint32(buckets)}}}
		for b := range buckets {
			h.PositiveBuckets = append(h.PositiveBuckets, int64(b%2+i))
		}
		count, sum := uint64(0), int64(0)
		for _, d := range h.PositiveBuckets {
			sum += d
			count += uint64(sum)
		}
		h.Count = count
		switch {
		case i%100 < 30:
			mixed.Samples = append(mixed.Samples, prompb.Sample{Timestamp: at, Value: float64(i)})
			want += fmt.Sprint(" ", i*1000, "=", i)
			continue
		case i%100 < 60:
			mixed.Histograms = append(mixed.Histograms, prompb.FromIntHistogram(at, h))
		default:
			mixed.Histograms = append(mixed.Histograms, prompb.FromFloatHistogram(at, h.ToFloat(nil)))
		}
		want += fmt.Sprint(" ", i*1000, "=", float64(count))
	}
	s.put("a", mixed)
	req := &prompb.ReadRequest{Queries: []*prompb.Query{
		query(start0+15_000, start0+30_000, "__name__", "req.*", "path", "/a|/b"), query(0, start0+1e9, "__name__", "mixed"), query(0, start0+1e9, "__name__", "secret"),
	}}
	all := []string{"0 __name__=requests_total job=api path=/a 15000=15 30000=30", "0 __name__=requests_total job=api path=/b 15000=5 30000=5", want}
	w := s.remoteRead("a", req)
	if got := texts(t, w.Body.Bytes()); w.Code != http.StatusOK || strings.Join(got, "\n") != strings.Join(all, "\n") || w.Header().Get("Content-Encoding") != "snappy" {
		t.Errorf("samples: %d\n got %q\nwant %q", w.Code, got, all)
	}
	req.AcceptedResponseTypes = []prompb.ReadRequest_ResponseType{prompb.ReadRequest_STREAMED_XOR_CHUNKS, prompb.ReadRequest_SAMPLES}
	w = s.remoteRead("a", req)
	if got := streamed(t, w.Body.Bytes()); w.Code != http.StatusOK || strings.Join(got, "\n") != strings.Join(all, "\n") || w.Header().Get("Content-Type") != streamedType {
		t.Errorf("streamed: %d\n got %q\nwant %q", w.Code, got, all)
	}
}

func TestRefusedReads(t *testing.T) {
	l := someLimits
	l.samples = 3
	s := filled(t, l)
	many := query(0, start0+1e9, "__name__", "requests_total")
	bad := query(0, 1, "a", "(")
	unknown := query(0, 1, "a", "b")
	unknown.Matchers[0].Type = 9
	for _, types := range [][]prompb.ReadRequest_ResponseType{nil, {prompb.ReadRequest_STREAMED_XOR_CHUNKS}} {
		for _, tt := range []struct {
			query  *prompb.Query
			status int
		}{{many, 422}, {bad, 400}, {unknown, 400}} {
			if w := s.remoteRead("a", &prompb.ReadRequest{Queries: []*prompb.Query{tt.query}, AcceptedResponseTypes: types}); w.Code != tt.status {
				t.Errorf("%v: %d %s, want %d", tt.query, w.Code, w.Body, tt.status)
			}
		}
		// An error after the first frame cuts the response.
		func() {
			defer func() {
				if cut := recover() == http.ErrAbortHandler; cut != (types != nil) {
					t.Errorf("%v: the response is cut: %v", types, cut)
				}
			}()
			s.remoteRead("a", &prompb.ReadRequest{Queries: []*prompb.Query{query(0, start0+1e9, "__name__", "up"), many}, AcceptedResponseTypes: types})
		}()
	}
	if len(s.gate.held) != 0 {
		t.Errorf("%d tenants hold places after a cut", len(s.gate.held))
	}
	r := httptest.NewRequest(http.MethodPost, "/api/v1/read", strings.NewReader("junk"))
	if w := s.send(r, "a"); w.Code != http.StatusBadRequest {
		t.Errorf("junk: %d, want 400", w.Code)
	}
}
