package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/tidemark-go/tidemark/tenant"
)

// remoteRead answers POST of remote read with samples, which every client accepts.
func (s *server) remoteRead(w http.ResponseWriter, r *http.Request) {
	id, _ := tenant.FromContext(r.Context())
	if err := checkEncoding(r.Header); err != nil {
		s.failWrite(w, r, err)
		return
	}
	message, release, err := s.readSnappy(w, r, id)
	defer release()
	if err != nil {
		s.failWrite(w, r, err)
		return
	}
	if !s.gate.enter(id) {
		s.failWrite(w, r, errBusyWrite)
		return
	}
	defer s.gate.leave(id)
	if err := s.admit(r.Context(), id); err != nil {
		s.failRead(w, r, err)
		return
	}
	var req prompb.ReadRequest
	if err := req.Unmarshal(message); err != nil {
		s.failWrite(w, r, &writeError{status: http.StatusBadRequest, text: "the body is not a prometheus.ReadRequest"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.timeout)
	defer cancel()
	q := &querier{queryable: &queryable{id, s.sources, newBudget(int64(s.limits.series), int64(s.limits.samples))}}
	var response prompb.ReadResponse
	for _, query := range req.Queries {
		found, err := selectedBy(ctx, q, query)
		if err != nil {
			s.failRead(w, r, err)
			return
		}
		response.Results = append(response.Results, resultOf(found))
	}
	body, err := response.Marshal()
	if err != nil {
		s.failRead(w, r, err)
		return
	}
	w.Header().Set("Content-Type", protobufType)
	w.Header().Set("Content-Encoding", "snappy")
	_, _ = w.Write(snappy.Encode(nil, body)) // the client may have gone
}

// failRead responds with an error, which may be one of a query.
func (s *server) failRead(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(r.Context().Err(), context.Canceled) {
		return
	}
	s.forgetErased(r, err)
	e := apiErrorOf(err)
	if e.status >= http.StatusInternalServerError && e.cause != nil {
		s.log.Error("remote read failed", "error", e.cause)
	}
	s.failWrite(w, r, &writeError{status: min(e.status, http.StatusServiceUnavailable), text: e.text, wait: e.wait})
}

func selectedBy(ctx context.Context, q *querier, query *prompb.Query) ([]*selected, error) {
	matchers := make([]*labels.Matcher, len(query.GetMatchers()))
	for i, m := range query.GetMatchers() {
		kind, ok := matcherTypes[m.Type]
		if !ok {
			return nil, badData(errors.New("a matcher has no known type"))
		}
		var err error
		if matchers[i], err = labels.NewMatcher(kind, m.Name, m.Value); err != nil {
			return nil, badData(err)
		}
	}
	return q.samples(ctx, query.StartTimestampMs, query.EndTimestampMs, matchers)
}

var matcherTypes = map[prompb.LabelMatcher_Type]labels.MatchType{
	prompb.LabelMatcher_EQ:  labels.MatchEqual,
	prompb.LabelMatcher_NEQ: labels.MatchNotEqual,
	prompb.LabelMatcher_RE:  labels.MatchRegexp,
	prompb.LabelMatcher_NRE: labels.MatchNotRegexp,
}

func resultOf(found []*selected) *prompb.QueryResult {
	result := new(prompb.QueryResult)
	for _, s := range found {
		ts := &prompb.TimeSeries{Labels: prompb.FromLabels(s.labels, nil)}
		for it := s.Iterator(nil); ; {
			switch it.Next() {
			case chunkenc.ValFloat:
				t, v := it.At()
				ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: t, Value: v})
				continue
			case chunkenc.ValHistogram:
				t, h := it.AtHistogram(nil)
				ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(t, h))
				continue
			case chunkenc.ValFloatHistogram:
				t, h := it.AtFloatHistogram(nil)
				ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(t, h))
				continue
			}
			break
		}
		result.Timeseries = append(result.Timeseries, ts)
	}
	return result
}
